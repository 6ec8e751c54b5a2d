{{/*
What stands against agents beside another operator, a line each, as `kubectl skyhook doctor --takeover` finds it: what it is,
and the command that resolves it. Helm looks with the rights of whoever calls it. `helm template` sees the served groups only.
*/}}
{{- define "skyhookd.takeoverFindings" -}}
{{- $other := "nodewright.nvidia.com" -}}
{{- $groups := dict -}}
{{- range .Capabilities.APIVersions }}{{ $_ := set $groups (index (splitList "/" .) 0) true }}{{ end -}}
{{- $hasSkyhooks := .Capabilities.APIVersions.Has "skyhook.nvidia.com/v1alpha1/Skyhook" -}}
{{- $found := list -}}
{{- if not .Values.ignoreNodeWright -}}
  {{- $found = include "skyhookd.nodeWrightFindings" (dict "root" . "groups" $groups "hasSkyhooks" $hasSkyhooks) | fromJsonArray -}}
{{- end -}}
{{- /* where neither operator ever ran nothing else is looked at */ -}}
{{- if or $hasSkyhooks (hasKey $groups $other) -}}
  {{- range (lookup "batch/v1" "Job" "" "").items -}}
    {{- $ended := false -}}
    {{- range (.status | default dict).conditions -}}
      {{- if and (has .type (list "Complete" "Failed")) (eq .status "True") }}{{ $ended = true }}{{ end -}}
    {{- end -}}
    {{- if and (hasKey (.metadata.labels | default dict) (printf "%s/node" $other)) (not $ended) -}}
      {{- $found = append $found (printf
        "Job %s/%s of NodeWright has not ended: kubectl -n %s delete job %s --cascade=foreground"
        .metadata.namespace .metadata.name .metadata.namespace .metadata.name) -}}
    {{- end -}}
  {{- end -}}
  {{- range (lookup "apps/v1" "Deployment" "" "").items -}}
    {{- $name := .metadata.name -}}
    {{- $isOperator := false -}}
    {{- range .spec.template.spec.containers -}}
      {{- $env := list -}}
      {{- range .env }}{{ $env = append $env .name }}{{ end -}}
      {{- $isNamed := or (hasSuffix "-controller-manager" $name) (regexMatch "/operator([:@]|$)" .image) (has "AGENT_IMAGE" $env) -}}
      {{- if and $isNamed (has "RUNTIME_REQUIRED_TAINT" $env) }}{{ $isOperator = true }}{{ end -}}
    {{- end -}}
    {{- if and $isOperator (gt (max (int .spec.replicas) (int (.status | default dict).replicas)) 0) -}}
      {{- $found = append $found (printf "Deployment %s/%s of the operator is running: kubectl -n %s scale deployment %s --replicas=0"
        .metadata.namespace $name .metadata.namespace $name) -}}
    {{- end -}}
  {{- end -}}
  {{- range $kind := list "ValidatingWebhookConfiguration" "MutatingWebhookConfiguration" -}}
    {{- range (lookup "admissionregistration.k8s.io/v1" $kind "" "").items -}}
      {{- $name := .metadata.name -}}
      {{- $isOperator := hasKey (.metadata.labels | default dict) (printf "%s/webhook-config" $other) -}}
      {{- range .webhooks }}{{ range .rules }}{{ if has "skyhook.nvidia.com" .apiGroups }}{{ $isOperator = true }}{{ end }}{{ end }}{{ end -}}
      {{- $silent := "" -}}
      {{- range $isOperator | ternary .webhooks list -}}
        {{- with .clientConfig.service -}}
          {{- $service := .name -}}
          {{- $isReady := false -}}
          {{- range (lookup "discovery.k8s.io/v1" "EndpointSlice" .namespace "").items -}}
            {{- if eq $service (index (.metadata.labels | default dict) "kubernetes.io/service-name" | default "") -}}
              {{- range .endpoints }}{{ if ne (toString (.conditions | default dict).ready) "false" }}{{ $isReady = true }}{{ end }}{{ end -}}
            {{- end -}}
          {{- end -}}
          {{- if not $isReady }}{{ $silent = printf "%s/%s" .namespace $service }}{{ end -}}
        {{- end -}}
      {{- end -}}
      {{- if $silent -}}
        {{- $found = append $found (printf "%s %s asks Service %s, which has no ready endpoint: kubectl delete %s %s"
          $kind $name $silent (lower $kind) $name) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Of that, what NodeWright has done and agents would do again. */}}
{{- define "skyhookd.nodeWrightFindings" -}}
{{- $other := "nodewright.nvidia.com" -}}
{{- $ignore := "skyhook.nvidia.com/ignore-nodewright" -}}
{{- $skyhooks := dict -}}
{{- $decided := 0 -}}
{{- if .hasSkyhooks -}}
  {{- range (lookup "skyhook.nvidia.com/v1alpha1" "Skyhook" "" "").items -}}
    {{- if eq "true" (index (.metadata.annotations | default dict) $ignore | default "") -}}
      {{- $decided = add1 $decided -}}
    {{- else -}}
      {{- $_ := set $skyhooks .metadata.name list -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $found := list -}}
{{- if and (hasKey .groups $other) (or $skyhooks (not $decided)) -}}
  {{- $names := list -}}
  {{- if .root.Capabilities.APIVersions.Has (printf "%s/v1alpha1/NodeWright" $other) -}}
    {{- range (lookup (printf "%s/v1alpha1" $other) "NodeWright" "" "").items }}{{ $names = append $names .metadata.name }}{{ end -}}
  {{- end -}}
  {{- $found = append $found (printf
    "the API server serves %s (NodeWrights: %s), and agents act on Skyhooks only. Without NodeWrights: kubectl delete customresourcedefinition nodewrights.%s deploymentpolicies.%s --ignore-not-found. To apply everything again: --set ignoreNodeWright=true"
    $other ($names | join ", " | default "none") $other $other) -}}
  {{- range $names -}}
    {{- if hasKey $skyhooks . -}}
      {{- $found = append $found (printf "Skyhook %s has a NodeWright of its name: kubectl annotate skyhook %s %s=true" . . $ignore) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if $skyhooks -}}
  {{- range (lookup "v1" "Node" "" "").items -}}
    {{- $node := .metadata.name -}}
    {{- $annotations := .metadata.annotations | default dict -}}
    {{- range $key, $_ := $annotations -}}
      {{- if hasPrefix $other $key -}}
        {{- $name := regexReplaceAll "^nodewright.nvidia.com/(nodeState|status|version|cordon|drainStart|drainBlocked)_" $key "" -}}
        {{- if hasKey $skyhooks $name -}}
          {{- $_ := set $skyhooks $name (append (get $skyhooks $name) $node | uniq) -}}
        {{- end -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- range $name, $nodes := $skyhooks -}}
    {{- if $nodes -}}
      {{- $found = append $found (printf "state of Skyhook %s under the other prefix, %s/, on %d nodes (%s): kubectl annotate skyhook %s %s=true"
        $name $other (len $nodes) (first $nodes) $name $ignore) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}
