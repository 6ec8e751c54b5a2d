{{/*
Values as the charts of the Skyhook operator and of NodeWright spell them (0.13 to 0.20). Values with the same meaning are
taken. Values about the operator itself have no effect. Values that request something that agents do differently are refused.
*/}}

{{/* The values below controllerManager.manager.env, as JSON. */}}
{{- define "skyhookd.operatorEnv" -}}
{{- ((.Values.controllerManager).manager).env | default dict | toJson -}}
{{- end -}}

{{/* Settings of hosts as JSON: the value of the operator's chart if it is given, otherwise that of this chart. */}}
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
controllerManager.manager.env.jobStageTimeout: a stage without stageTimeout has no limit
controllerManager.manager.env.publishLegacyMetrics: agents always publish the series skyhook_*
kubernetesClusterDomain: no name of a service is used
metricsService: use metrics.podMonitor, or the annotations prometheus.io/* of the agents' pods
metrics.addServiceAccountBinding: metrics need no permission
metrics.serviceAccountName: metrics need no permission
metrics.serviceAccountNamespace: metrics need no permission
webhookService: there are no webhooks
webhook: there are no webhooks, admission policies check what they did
selectorMigration: there is no Deployment
cleanup: helm uninstall deletes no Skyhook, and refuses while agents have to uninstall packages
limitRange: none is created; where pods need one, create it yourself
useHostNetwork: agents always use the network of their host
estimatedPackageCount: the memory of an agent does not depend on it, see resources
{{- end -}}

{{/* Operator's values that are refused, each with what to use instead. Every name is in README.md. */}}
{{- define "skyhookd.refused" -}}
controllerManager.manager.env.jobStageTimeout: set stageTimeout of packages in the Skyhooks; a stage without it has no limit
controllerManager.manager.env.jobBackoffLimit: agents try a failed stage again until it passes; a failing node keeps its place in the budget, and failureThreshold of a DeploymentPolicy stops a rollout
controllerManager.manager.env.jobTtlSucceeded: there are no Jobs; each host keeps the newest five logs of each step in agentLogRoot
controllerManager.manager.env.jobTtlFailed: there are no Jobs; each host keeps the newest five logs of each step in agentLogRoot
controllerManager.manager.env.legacyCleanupDelay: agents keep the keys of skyhook.nvidia.com on Nodes, there is nothing to delete later
controllerManager.manager.env.publishLegacyMetrics: agents publish the series skyhook_* and none of them under another name; drop them in the configuration of Prometheus
{{- end -}}

{{/* The lines `NAME: TEXT` below whose value is given, as JSON: TEXT by NAME. */}}
{{- define "skyhookd.given" -}}
{{- $given := dict -}}
{{- range $line := .lines | splitList "\n" -}}
{{- $name := regexFind "^[^:]+" $line -}}
{{- $place := dict "value" $.values -}}
{{- range splitList "." $name -}}
{{- $inner := and (kindIs "map" $place.value) (hasKey $place.value .) | ternary (get (kindIs "map" $place.value | ternary $place.value dict) .) nil -}}
{{- $_ := set $place "value" $inner -}}
{{- end -}}
{{- if not (kindIs "invalid" $place.value) }}{{ $_ := set $given $name (trimPrefix (printf "%s: " $name) $line) }}{{ end -}}
{{- end -}}
{{- $given | toJson -}}
{{- end -}}

{{/* Fails if a value is given that agents cannot honor, and names all of them. */}}
{{- define "skyhookd.refuseValues" -}}
{{- $env := include "skyhookd.operatorEnv" . | fromJson -}}
{{- $refused := include "skyhookd.given" (dict "lines" (include "skyhookd.refused" .) "values" .Values) | fromJson -}}
{{- /* what agents do anyway */ -}}
{{- range $name, $values := dict "jobStageTimeout" (list "0" "0s") "publishLegacyMetrics" (list "true") -}}
{{- if has (toString (get $env $name)) $values }}{{ $_ := unset $refused (printf "controllerManager.manager.env.%s" $name) }}{{ end -}}
{{- end -}}
{{- if $refused -}}
{{- $lines := list -}}
{{- range $name, $text := $refused }}{{ $lines = append $lines (printf "  %s: %s" $name $text) }}{{ end -}}
{{- fail (printf "values of the operator's chart that agents cannot honor; remove them:\n%s" (join "\n" $lines)) -}}
{{- end -}}
{{- end -}}

{{/* For NOTES: a line for each of the operator's values that is given. Empty if none is. */}}
{{- define "skyhookd.operatorValueNotes" -}}
{{- $env := include "skyhookd.operatorEnv" . | fromJson -}}
{{- range list "agentLogRoot" "copyDirRoot" "logLevel" "reapplyOnReboot" "runtimeRequiredTaint" }}
{{- if hasKey $env . }}
    controllerManager.manager.env.{{ . }} is taken as {{ . }}
{{- end -}}
{{- end -}}
{{- range $name, $text := include "skyhookd.given" (dict "lines" (include "skyhookd.withoutEffect" .) "values" .Values) | fromJson }}
    {{ $name }} has no effect: {{ $text }}
{{- end -}}
{{- end -}}
