# Gives settings back the values that they had before this package. Sourced, after common.sh.
# shellcheck shell=bash

restore_sysctls() { # restore_sysctls PREDICATE: those for whose path the predicate is true; the record keeps the others
  local line path value
  [[ -f ${original_sysctls:?} ]] || return 0
  local -a left=()
  while IFS= read -r line; do
    path=${line%%=*} value=${line#*=}
    if ! "$1" "$path"; then
      left+=("$line")
    elif printf '%s\n' "$value" 2>/dev/null >"/proc/sys/$path"; then
      echo "${path//\//.} = $value (restored)"
    else # a module unloaded, an interface gone
      echo "${path//\//.} cannot be restored to \"$value\""
    fi
  done <"$original_sysctls"
  if ((${#left[@]} > 0)); then
    printf '%s\n' "${left[@]}" | write_file "$original_sysctls"
  else
    rm -r "${original_sysctls%/*}"
  fi
}
