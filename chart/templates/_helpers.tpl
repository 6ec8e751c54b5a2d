{{/* Name of every object. Release `skyhookd` gives `skyhookd`. */}}
{{- define "skyhookd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the agents' pods. The census finds them by the first one, so it cannot be a setting. */}}
{{- define "skyhookd.selectorLabels" -}}
app.kubernetes.io/name: skyhookd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "skyhookd.labels" -}}
{{ include "skyhookd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- range $key, $value := .Values.commonLabels }}
{{- if regexMatch "^(app\\.kubernetes\\.io/(name|instance|version|managed-by|component)|(helm\\.sh|skyhook\\.nvidia\\.com)/.*)$" $key }}
{{- fail (printf "commonLabels has %s: the chart and the agents find their objects by labels of this kind" $key) }}
{{- end }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* The labels of one object: the common labels, overridden by `more`. */}}
{{- define "skyhookd.labelsWith" -}}
{{- mergeOverwrite (include "skyhookd.labels" .context | fromYaml) (.more | default dict) | toYaml -}}
{{- end -}}

{{/* For policies that only helm's hooks use. */}}
{{- define "skyhookd.hookPolicyLabels" -}}
{{ include "skyhookd.labels" . }}
app.kubernetes.io/component: helm-hook
{{- end -}}

{{- define "skyhookd.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "skyhookd.fullname" .) -}}
{{- end -}}

{{- define "skyhookd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Names of all pull Secrets, as a JSON list. */}}
{{- define "skyhookd.pullSecretNames" -}}
{{- $names := list -}}
{{- range .Values.imagePullSecrets }}{{ $names = append $names .name }}{{ end -}}
{{- with .Values.imagePullSecret }}{{ $names = append $names . }}{{ end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{/* The budget of Skyhooks without one, without null values: helm keeps nulls of values that are given again. */}}
{{- define "skyhookd.defaultBudget" -}}
{{- $budget := dict -}}
{{- range $key, $value := ((.Values.defaults | default dict).interruptionBudget | default dict) }}
{{- if not (kindIs "invalid" $value) }}{{ $_ := set $budget $key $value }}{{ end }}
{{- end }}
{{- if and (hasKey $budget "count") (hasKey $budget "percent") }}
{{- fail "defaults.interruptionBudget has count and percent: keep one of them, and set the other to null" }}
{{- end }}
{{- if and (hasKey $budget "maxCount") (not (hasKey $budget "percent")) }}
{{- fail "defaults.interruptionBudget has maxCount without percent, which it caps" }}
{{- end }}
{{- $budget | toJson -}}
{{- end -}}

{{/* Namespaces without evictions, as JSON. Null removes the default, and means neither that list nor an empty one. */}}
{{- define "skyhookd.skipNamespaces" -}}
{{- if kindIs "invalid" .Values.drain.skipNamespaces }}
{{- fail "drain.skipNamespaces is null: give the namespaces whose pods agents never evict, or [] for none" }}
{{- end }}
{{- .Values.drain.skipNamespaces | toJson -}}
{{- end -}}

{{/*
The agent's settings as JSON: texts by key, one for each setting, so that a patch can change one. The keys are those of the
agent (src/schemas/setting-keys.ts), not those of the chart.
*/}}
{{- define "skyhookd.settings" -}}
{{- $host := include "skyhookd.hostSettings" . | fromJson -}}
{{- $settings := dict
  "copyDirRoot" $host.copyDirRoot
  "agentLogRoot" $host.agentLogRoot
  "stepLogLimit" .Values.stepLogLimit
  "runtimeRequiredTaint" $host.runtimeRequiredTaint
  "reapplyOnReboot" $host.reapplyOnReboot
  "ignoreNodeWright" .Values.ignoreNodeWright
  "defaults.interruptionBudget" (include "skyhookd.defaultBudget" . | fromJson)
  "drain.skipNamespaces" (include "skyhookd.skipNamespaces" . | fromJsonArray)
  "drain.allowDelete" .Values.drain.allowDelete
  "logLevel" $host.logLevel
  "metrics.enabled" .Values.metrics.enabled
  "metrics.port" .Values.metrics.port
  "health.port" .Values.health.port
  "registries" .Values.registries
  "imagePullSecrets" (include "skyhookd.pullSecretNames" . | fromJsonArray)
  "imageCredentialProviders.enabled" .Values.imageCredentialProviders.enabled
  "imageCredentialProviders.config" .Values.imageCredentialProviders.config
  "imageCredentialProviders.binDir" .Values.imageCredentialProviders.binDir
  "estimatedNodeCount" .Values.estimatedNodeCount
  "proxy.httpsProxy" .Values.proxy.httpsProxy
  "proxy.noProxy" .Values.proxy.noProxy
-}}
{{- $data := dict -}}
{{- range $key, $value := $settings -}}
{{- if not (kindIs "invalid" $value) }}{{ $_ := set $data $key (kindIs "string" $value | ternary $value (toJson $value)) }}{{ end -}}
{{- end -}}
{{- $data | toJson -}}
{{- end -}}

{{/* Key of the runtime-required taint, the part before `=` or `:`. */}}
{{- define "skyhookd.runtimeRequiredKey" -}}
{{- index (regexSplit "[=:]" (include "skyhookd.hostSettings" . | fromJson).runtimeRequiredTaint -1) 0 -}}
{{- end -}}

{{/* Keys of the taints that the Skyhook operator and NodeWright put on nodes, without that of the values: a JSON list. */}}
{{- define "skyhookd.otherRequiredKeys" -}}
{{- without (list "skyhook.nvidia.com" "nodewright.nvidia.com") (include "skyhookd.runtimeRequiredKey" .) | toJson -}}
{{- end -}}

{{/* Tolerations of the agents: those of the values, and the runtime-required taints, which only an agent removes. */}}
{{- define "skyhookd.tolerations" -}}
{{- $tolerations := .Values.tolerations | default list -}}
{{- if not (has (dict "operator" "Exists") $tolerations) -}}
{{- $configured := (include "skyhookd.hostSettings" . | fromJson).runtimeRequiredTaint -}}
{{- $key := include "skyhookd.runtimeRequiredKey" . -}}
{{- $own := list (dict "key" $key "operator" "Exists" "effect" (splitList ":" $configured | last)) -}}
{{- range include "skyhookd.otherRequiredKeys" . | fromJsonArray -}}
{{- $own = append $own (dict "key" . "operator" "Exists" "effect" "NoSchedule") -}}
{{- end -}}
{{- $tolerations = concat $tolerations $own | uniq -}}
{{- end -}}
{{- toYaml $tolerations -}}
{{- end -}}

{{/* The agents, as the API server names them. */}}
{{- define "skyhookd.agentUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "skyhookd.serviceAccountName" . }}
{{- end -}}

{{/* Limits an admission policy to requests of the agents. */}}
{{- define "skyhookd.onlyAgents" -}}
- name: from-an-agent
  expression: request.userInfo.username == '{{ include "skyhookd.agentUser" . }}'
{{- end -}}

{{/* The node named in the request's token; empty for a token that is not bound to a pod. */}}
{{- define "skyhookd.agentNode" -}}
- name: agentNode
  expression: request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')
{{- end -}}

{{- define "skyhookd.boundToken" -}}
- expression: variables.agentNode != ''
  reason: Forbidden
  message: this token names no node; agents may write only with the token of their own pod
{{- end -}}
