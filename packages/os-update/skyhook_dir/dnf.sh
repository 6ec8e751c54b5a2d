# dnf: Fedora, RHEL and their kin. Sourced by common.sh.
# shellcheck shell=bash disable=SC2154 # common.sh reads the keys

dnf_mend() { :; } # a transaction that broke off is made again

dnf_refresh() { dnf -q makecache --refresh || fail "dnf makecache failed"; }

dnf_excludes() { # in the array excludes
  excludes=()
  local pattern
  for pattern in "${hold[@]}"; do excludes+=("--exclude=$pattern"); done
}

dnf_list() { # dnf_list SCOPE [filtered]
  local -a excludes=()
  local found
  [[ ${2:-} != filtered ]] || dnf_excludes
  if [[ $1 == security ]]; then
    # The versions that advisories name. `repoquery --security` would name later ones too, which no advisory asks for.
    found=$(dnf -q -C updateinfo list --security "${excludes[@]}") || fail "dnf cannot list the updates"
    # ID SEVERITY NAME-VERSION-RELEASE.ARCH; dnf 5 has more columns
    found=$(awk '{ for (i = 2; i <= NF; i++) if ($i ~ /-[^-]+-[^-]+[.][^.]+$/) { print $i; break } }' <<<"$found" |
      sed -E 's/^(.+)-([^-]+-[^-]+)$/\1 \2/')
  else
    found=$(dnf -q -C repoquery --upgrades --latest-limit=1 "${excludes[@]}" --qf '%{name} %{evr}.%{arch}\n') ||
      fail "dnf cannot list the updates"
  fi
  # several advisories may name one package: the latest version of each
  sed '/^$/d' <<<"$found" | sort -V |
    awk '{ arch = $2; sub(/.*[.]/, "", arch); latest[$1 " " arch] = $0 } END { for (key in latest) print latest[key] }' | sort
}

dnf_install() { # dnf_install NAME VERSION...: exactly these, with what they newly depend on
  local -a wanted=() excludes
  while (($# > 0)); do
    wanted+=("$1-$2")
    shift 2
  done
  dnf_excludes
  dnf -y --best "${excludes[@]}" upgrade "${wanted[@]}"
}

dnf_reboot_reasons() { # of the core libraries and services
  local said
  dnf -q needs-restarting --help >/dev/null 2>&1 || return 0 # a plugin that a minimal host lacks
  said=$(dnf -q -C needs-restarting -r) && return 0
  sed -n 's/^ *\* *//p' <<<"$said" | grep . || echo needs-restarting
}
