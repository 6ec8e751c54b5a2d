{{/* Values as the Skyhook operator's chart spells them: those that mean the same are taken, the others have no effect. */}}

{{/* What stands below controllerManager.manager.env, as JSON. */}}
{{- define "skyhookd.operatorEnv" -}}
{{- ((.Values.controllerManager).manager).env | default dict | toJson -}}
{{- end -}}

{{/* Settings of hosts as JSON: each as the operator's chart spells it where that is given, else as this chart does. */}}
{{- define "skyhookd.hostSettings" -}}
{{- $env := include "skyhookd.operatorEnv" . | fromJson -}}
{{- $settings := dict -}}
{{- range list "copyDirRoot" "agentLogRoot" "runtimeRequiredTaint" "reapplyOnReboot" "logLevel" -}}
{{- $_ := set $settings . (hasKey $env . | ternary (get $env .) (get $.Values .)) -}}
{{- end -}}
{{- /* a string in the operator's chart */ -}}
{{- $_ := set $settings "reapplyOnReboot" (eq (toString $settings.reapplyOnReboot) "true") -}}
{{- $settings | toJson -}}
{{- end -}}

{{/* Operator's values without an effect, each with what to do. Every name is in README.md. */}}
{{- define "skyhookd.withoutEffect" -}}
controllerManager.tolerations: it was about the operator's pod; tolerations is about the agents, which tolerate every taint
controllerManager.selectors: it was about the operator's pod; nodeSelector is about the agents, which run on every Linux node
controllerManager.nodeAffinity: it was about the operator's pod; affinity is about the agents
controllerManager.replicas: there is no controller, one agent runs on each node
controllerManager.podDisruptionBudget: there is no controller; updateStrategy says how many agents are replaced at once
controllerManager.serviceAccount: use serviceAccount.annotations
controllerManager.kubeRbacProxy: agents serve metrics without a proxy, see metrics
controllerManager.manager.containerSecurityContext: it is fixed, see the DaemonSet
controllerManager.manager.image: use image
controllerManager.manager.agent: use image, there is one image
controllerManager.manager.resources: use resources, of one agent on each node
controllerManager.manager.env.leaderElection: agents always elect the one that counts
controllerManager.manager.env.metricsPort: use metrics.port, on each node
controllerManager.manager.env.probePort: use health.port, on each node
controllerManager.manager.env.pauseImage: there are no package pods
kubernetesClusterDomain: no name of a service is used
metricsService: use metrics.podMonitor, or the annotations prometheus.io/* of the agents' pods
metrics.addServiceAccountBinding: metrics need no permission
metrics.serviceAccountName: metrics need no permission
metrics.serviceAccountNamespace: metrics need no permission
webhookService: there are no webhooks
webhook: there are no webhooks, admission policies check what they did
cleanup: helm uninstall deletes no Skyhook, and refuses while agents have to uninstall packages
limitRange: none is created; where pods need one, create it yourself
useHostNetwork: agents always use the network of their host
estimatedPackageCount: the memory of an agent does not depend on it, see resources
{{- end -}}

{{/* For NOTES: a line for each of the operator's values that is given. Empty if none is. */}}
{{- define "skyhookd.operatorValueNotes" -}}
{{- range $name, $_ := omit (include "skyhookd.operatorEnv" . | fromJson) "leaderElection" "metricsPort" "probePort" "pauseImage" }}
    controllerManager.manager.env.{{ $name }} is taken as {{ $name }}
{{- end -}}
{{- range $line := include "skyhookd.withoutEffect" . | splitList "\n" -}}
{{- $name := regexFind "^[^:]+" $line -}}
{{- $place := dict "value" $.Values -}}
{{- range splitList "." $name -}}
{{- $inner := and (kindIs "map" $place.value) (hasKey $place.value .) | ternary (get (kindIs "map" $place.value | ternary $place.value dict) .) nil -}}
{{- $_ := set $place "value" $inner -}}
{{- end -}}
{{- if not (kindIs "invalid" $place.value) }}
    {{ $name }} has no effect: {{ trimPrefix (printf "%s: " $name) $line }}
{{- end -}}
{{- end -}}
{{- end -}}
