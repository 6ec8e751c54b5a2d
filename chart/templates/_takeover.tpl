{{/*
What prevents agents from running beside another operator, as `kubectl skyhook doctor --takeover` reports it: a JSON list of
lines, each with a finding and the command that resolves it. Helm looks with the rights of its user, and `helm template` sees
only the served groups. test/cluster/nodewright.test.ts compares the two.
*/}}
{{- define "skyhookd.takeoverFindings" -}}
{{- $groups := dict -}}
{{- range .Capabilities.APIVersions }}{{ $_ := set $groups (splitList "/" . | first) true }}{{ end -}}
{{- $found := list -}}
{{- /* where neither operator ever ran nothing else is looked at */ -}}
{{- if or (hasKey $groups "skyhook.nvidia.com") (hasKey $groups "nodewright.nvidia.com") -}}
  {{- if not .Values.ignoreNodeWright -}}
    {{- $found = include "skyhookd.nodeWrightFindings" . | fromJsonArray -}}
  {{- end -}}
  {{- range list "skyhookd.jobFindings" "skyhookd.operatorFindings" "skyhookd.webhookFindings" -}}
    {{- $found = include . $ | fromJsonArray | concat $found -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Work of NodeWright that agents would repeat. */}}
{{- define "skyhookd.nodeWrightFindings" -}}
{{- $ignore := "skyhook.nvidia.com/ignore-nodewright" -}}
{{- $versions := .Capabilities.APIVersions -}}
{{- $found := list -}}
{{- /* Nodes with its state by the names of Skyhooks for which it counts */ -}}
{{- $skyhooks := dict -}}
{{- $isDecided := false -}}
{{- if $versions.Has "skyhook.nvidia.com/v1alpha1/Skyhook" -}}
  {{- range (lookup "skyhook.nvidia.com/v1alpha1" "Skyhook" "" "").items -}}
    {{- if eq "true" (get (.metadata.annotations | default dict) $ignore) -}}
      {{- $isDecided = true -}}
    {{- else -}}
      {{- $_ := set $skyhooks .metadata.name list -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $isServed := false -}}
{{- range $versions }}{{ if hasPrefix "nodewright.nvidia.com/" . }}{{ $isServed = true }}{{ end }}{{ end -}}
{{- if and $isServed (or $skyhooks (not $isDecided)) -}}
  {{- /* a list that is empty because nobody looked must not lead to the deletion of what is in it */ -}}
  {{- $isSeen := false -}}
  {{- range list "nodewrights" "deploymentpolicies" -}}
    {{- $name := printf "%s.nodewright.nvidia.com" . -}}
    {{- if lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}{{ $isSeen = true }}{{ end -}}
  {{- end -}}
  {{- $names := list -}}
  {{- range $version := $versions -}}
    {{- if regexMatch "^nodewright[.]nvidia[.]com/[^/]+/NodeWright$" $version -}}
      {{- range (lookup (dir $version) "NodeWright" "" "").items }}{{ $names = append $names .metadata.name | uniq }}{{ end -}}
    {{- end -}}
  {{- end -}}
  {{- if and $isSeen (not $names) -}}
    {{- $found = append $found (print "the API server serves nodewright.nvidia.com, without a NodeWright: "
      "kubectl delete customresourcedefinition nodewrights.nodewright.nvidia.com deploymentpolicies.nodewright.nvidia.com "
      "--ignore-not-found") -}}
  {{- else -}}
    {{- $found = append $found (printf (print "the API server serves nodewright.nvidia.com (%s), and agents act on Skyhooks "
      "only; if what it did is to run again: --set ignoreNodeWright=true")
      ($names | join ", " | default "helm cannot see its NodeWrights here")) -}}
  {{- end -}}
  {{- range $names -}}
    {{- if hasKey $skyhooks . -}}
      {{- $found = append $found (printf "Skyhook %s has a NodeWright of its name: kubectl annotate skyhook %s %s=true"
        . . $ignore) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if $skyhooks -}}
  {{- $key := "^nodewright[.]nvidia[.]com/(nodeState|status|version|cordon|drainStart|drainBlocked)_" -}}
  {{- range (lookup "v1" "Node" "" "").items -}}
    {{- $node := .metadata.name -}}
    {{- range $annotation, $_ := .metadata.annotations -}}
      {{- if hasPrefix "nodewright.nvidia.com/" $annotation -}}
        {{- $name := regexReplaceAll $key $annotation "" -}}
        {{- if hasKey $skyhooks $name -}}
          {{- $_ := set $skyhooks $name (append (get $skyhooks $name) $node | uniq) -}}
        {{- end -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- range $name, $nodes := $skyhooks -}}
    {{- if $nodes -}}
      {{- $found = append $found (printf (print "state of Skyhook %s under the other prefix, nodewright.nvidia.com/, on Node %s "
        "(%d in all): kubectl annotate skyhook %s %s=true") $name (first $nodes) (len $nodes) $name $ignore) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Jobs of NodeWright that have not ended: Kubernetes continues them without its operator. */}}
{{- define "skyhookd.jobFindings" -}}
{{- $found := list -}}
{{- range (lookup "batch/v1" "Job" "" "").items -}}
  {{- if hasKey (.metadata.labels | default dict) "nodewright.nvidia.com/node" -}}
    {{- $hasEnded := false -}}
    {{- range (.status | default dict).conditions -}}
      {{- if and (has .type (list "Complete" "Failed")) (eq .status "True") }}{{ $hasEnded = true }}{{ end -}}
    {{- end -}}
    {{- if not $hasEnded -}}
      {{- $found = append $found (printf "Job %s/%s of NodeWright has not ended: kubectl -n %s delete job %s --cascade=foreground"
        .metadata.namespace .metadata.name .metadata.namespace .metadata.name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Deployments of an operator, under its old and its new names. */}}
{{- define "skyhookd.operatorFindings" -}}
{{- $found := list -}}
{{- range (lookup "apps/v1" "Deployment" "" "").items -}}
  {{- $deployment := .metadata.name -}}
  {{- $isOperator := false -}}
  {{- range .spec.template.spec.containers -}}
    {{- $variables := list -}}
    {{- range .env }}{{ $variables = append $variables .name }}{{ end -}}
    {{- $isNamed := or (hasSuffix "-controller-manager" $deployment) (regexMatch "/operator([:@]|$)" .image) -}}
    {{- if and (has "RUNTIME_REQUIRED_TAINT" $variables) (or $isNamed (has "AGENT_IMAGE" $variables)) -}}
      {{- $isOperator = true -}}
    {{- end -}}
  {{- end -}}
  {{- if and $isOperator (or .spec.replicas (.status | default dict).replicas) -}}
    {{- $found = append $found (printf
      "Deployment %s/%s of an operator is not stopped: kubectl -n %s scale deployment %s --replicas=0"
      .metadata.namespace $deployment .metadata.namespace $deployment) -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Webhooks of an operator without a running server: the API server refuses each change of their objects. */}}
{{- define "skyhookd.webhookFindings" -}}
{{- $found := list -}}
{{- range $kind := list "ValidatingWebhookConfiguration" "MutatingWebhookConfiguration" -}}
  {{- range (lookup "admissionregistration.k8s.io/v1" $kind "" "").items -}}
    {{- $configuration := .metadata.name -}}
    {{- $isOperator := hasKey (.metadata.labels | default dict) "nodewright.nvidia.com/webhook-config" -}}
    {{- range .webhooks -}}
      {{- range .rules }}{{ if has "skyhook.nvidia.com" .apiGroups }}{{ $isOperator = true }}{{ end }}{{ end -}}
    {{- end -}}
    {{- $silent := list -}}
    {{- range $isOperator | ternary .webhooks list -}}
      {{- with .clientConfig.service -}}
        {{- $service := .name -}}
        {{- $isReady := false -}}
        {{- range (lookup "discovery.k8s.io/v1" "EndpointSlice" .namespace "").items -}}
          {{- if eq $service (get (.metadata.labels | default dict) "kubernetes.io/service-name") -}}
            {{- range .endpoints -}}
              {{- if ne "false" (toString (get (.conditions | default dict) "ready")) }}{{ $isReady = true }}{{ end -}}
            {{- end -}}
          {{- end -}}
        {{- end -}}
        {{- if not $isReady }}{{ $silent = append $silent (printf "%s/%s" .namespace $service) | uniq }}{{ end -}}
      {{- end -}}
    {{- end -}}
    {{- if $silent -}}
      {{- $found = append $found (printf "%s %s asks Service %s, which has no ready endpoint: kubectl delete %s %s"
        $kind $configuration (join ", " $silent) (lower $kind) $configuration) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}
