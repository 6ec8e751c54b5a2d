# What is built once, before anything boots. Sourced by bin/sandbox.
# shellcheck shell=bash disable=SC2154 # missing_packages is of machine.sh

NEEDED_BY_UP=(base registry programs)
[[ ${AGENT:-1} == 0 ]] || NEEDED_BY_UP+=(node) # the agent's image is built with it

# Seconds on an idle machine with two processors.
plan_parts() {
  [[ ${#missing_packages[@]} -eq 0 ]] || echo "main 30 Debian packages"
  if wants node "$@" && [[ ! -e $REPOSITORY/node_modules/.installed ]]; then echo "main 30 Node.js packages"; fi
  if wants base "$@" && [[ ! -d $BASE ]]; then echo "base 150 base disk"; fi
  if wants registry "$@" && [[ ! -x $REGISTRY_PROGRAM ]]; then echo "registry 5 registry"; fi
  if wants programs "$@"; then "$HERE/build-binaries.sh" --plan; fi
}

# Builds what is missing of these: node, base, registry, programs. After require_machine; the caller traps parts_end.
build_missing() {
  local plan jobs=()
  plan=$(plan_parts "$@") || exit 1
  [[ -n $plan ]] || return 0
  parts_begin "$plan"
  part 'Debian packages' install_missing_packages
  part 'Node.js packages' make --no-print-directory -C "$REPOSITORY" deps
  part 'base disk' make_base & jobs+=($!)
  part registry fetch_registry & jobs+=($!)
  if wants programs "$@"; then "$HERE/build-binaries.sh" >/dev/null || exit 1; fi
  wait_all "${jobs[@]}" || exit 1
  parts_end
  say "built in $(elapsed) s"
}
