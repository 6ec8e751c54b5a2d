#!/usr/bin/env bash
# Puts this checkout into the cluster of kubectl's current context, without helm, and takes it out again.
# Usage: deploy.sh install       apply the resource definitions
#        deploy.sh deploy        push the agent's image to $IMAGE, apply definitions and agents, wait for them
#        deploy.sh undeploy      remove the agents; refuses while there are Skyhooks
#        deploy.sh uninstall     remove the definitions; refuses while there are Skyhooks or DeploymentPolicies
#        deploy.sh overlay       only print the kustomization that `deploy` applies
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
overlay=dist/deploy
definitions=(skyhooks.skyhook.nvidia.com deploymentpolicies.skyhook.nvidia.com)

die() { echo "$*" >&2; exit 1; }

overlay() { # the agents with the image in $IMAGE: REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST
  local name tag
  [[ ${IMAGE:-} == */* ]] || die "IMAGE=${IMAGE:-} names no registry: set IMAGE=registry.example.com/infra/skyhookd:0.1.0, a place that all nodes can pull from"
  case ${IMAGE##*/} in
    *@sha256:*) name=${IMAGE%@*} tag="digest: ${IMAGE##*@}" ;;
    *:?*) name=${IMAGE%:*} tag="newTag: \"${IMAGE##*:}\"" ;;
    *) die "IMAGE=$IMAGE has no tag: append one, such as $IMAGE:0.1.0" ;;
  esac
  cat <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../daemonset
images:
  - name: registry.example.com/infra/skyhookd
    newName: $name
    $tag
YAML
}

refuse_while_there_are() { # refuse_while_there_are NAME...: definitions whose objects would be lost or stranded
  local definition found
  for definition; do
    [[ -n $(kubectl get customresourcedefinition "$definition" --ignore-not-found -o name) ]] || continue
    found=$(kubectl get "$definition" -o name)
    [[ -z $found ]] || die "there are still objects, remove them first (kubectl delete ${definition%%.*} --all):"$'\n'"$found"
  done
}

install() { kubectl apply --server-side -f crds; }

case ${1:-} in
  overlay) overlay ;;
  install) install ;;
  deploy)
    mkdir -p "$overlay"
    overlay >"$overlay/kustomization.yaml"
    [[ $IMAGE == *@* ]] || node build/image.ts --push "$IMAGE"
    install
    kubectl apply -k "$overlay"
    kubectl rollout status daemonset/skyhookd -n skyhook
    ;;
  undeploy)
    # their finalizers wait for the agents
    refuse_while_there_are "${definitions[0]}"
    # The rest stays for a later deployment (chart/templates/parameters.yaml).
    kubectl delete --ignore-not-found -f daemonset/skyhookd.yaml -l app.kubernetes.io/component!=parameters
    ;;
  uninstall)
    # with a definition, the API server deletes all of its objects
    refuse_while_there_are "${definitions[@]}"
    kubectl delete --ignore-not-found -f crds
    ;;
  *) sed -n 's/^# \(Usage: \)\?\( *deploy.sh\)/\2/p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
