# Takes the limits out, and the line in PAM's files with the last package that needs it. Sourced, after common.sh.
# shellcheck shell=bash

rm -f "${limits_file:?}"
if ! compgen -G '/etc/security/limits.d/999-*-tuning.conf' >/dev/null; then
  while IFS= read -r file; do
    if grep -Fxq "${pam_line:?}" "$file"; then grep -Fxv "$pam_line" "$file" | write_file "$file"; fi
  done < <(pam_files)
fi
