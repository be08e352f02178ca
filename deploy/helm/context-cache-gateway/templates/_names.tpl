{{- define "gateway.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "gateway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "gateway.tenantSecret" -}}
{{ .Values.tenant.existingSecret | default (printf "%s-tenant" (include "gateway.name" .)) }}
{{- end }}

{{- define "gateway.tlsSecret" -}}
{{ .Values.tls.existingSecret | default (printf "%s-tls" (include "gateway.name" .)) }}
{{- end }}

{{- define "gateway.clientTlsSecret" -}}
{{ .Values.tls.clientSecret | default (printf "%s-client-tls" (include "gateway.name" .)) }}
{{- end }}

{{- define "gateway.poolName" -}}
{{ .Values.inferencePool.name | default .Release.Name }}
{{- end }}

{{/* TLS with client certificates; a gateway that calls a picker has none. */}}
{{- define "gateway.mtls" -}}
{{- if and .Values.tls.enabled (not .Values.inferencePool.enabled) }}true{{ end }}
{{- end }}

{{- define "gateway.drainSeconds" -}}
{{ ternary .Values.inferencePool.drainSeconds 10 .Values.inferencePool.enabled }}
{{- end }}

{{- define "gateway.enginesDnsName" -}}
{{ .Values.engines.dnsName | default (printf "%s-engines.%s.svc" (include "gateway.name" .) .Release.Namespace) }}
{{- end }}

{{/* What keeps the release from working is said before anything is installed. */}}
{{- define "gateway.check" -}}
{{- if and (not .Values.engines.selector) (not .Values.engines.dnsName) }}
{{- fail "Name the engines: --set engines.selector.app=vllm (labels of their pods), or engines.dnsName (a headless Service)." }}
{{- end }}
{{- if and .Values.inferencePool.enabled (or .Values.envoy.enabled (not .Values.engines.selector)) }}
{{- fail "An InferencePool needs engines.selector, and a gateway of its own instead of envoy.enabled." }}
{{- end }}
{{- if and (or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled) (not .Values.redis.existingSecret) }}
{{- fail "Several gateways share sessions through Redis: name the Secret with its URL (--set redis.existingSecret=redis-url), or set replicas=1 (sessions are then lost with the pod)." }}
{{- end }}
{{- if and (eq .Values.redis.kind "sentinels") (not .Values.redis.sentinelMaster) }}
{{- fail "Sentinels watch several masters: name the one of the sessions (--set redis.sentinelMaster=mymaster)." }}
{{- end }}
{{- if and (include "gateway.mtls" .) (not .Values.tls.certManager.enabled) (ne (empty .Values.tls.existingSecret) (empty .Values.tls.clientSecret)) (or .Values.envoy.enabled .Values.tls.clientSecret) }}
{{- fail "Name both tls.existingSecret and tls.clientSecret, or neither: the certificates that the chart makes trust each other alone." }}
{{- end }}
{{- if and (eq .Values.kv.connector "lmcache") (not .Values.kv.lmcacheUrl) }}
{{- fail "The connector lmcache needs kv.lmcacheUrl, the URL of the LMCache coordinator." }}
{{- end }}
{{- if has false (dig "sessions" "implicit" "names" list .Values.config) }}
{{- fail "Quote \"off\" in config.sessions.implicit.names: without quotes it is a truth value in Helm's YAML." }}
{{- end }}
{{- if and (eq .Values.kv.connector "llamacpp-slots") (not .Values.kv.existingClaim) }}
{{- fail "The connector llamacpp-slots needs kv.existingClaim, a volume claim that the engines mount as well." }}
{{- end }}
{{- end }}

{{/* Of (context, enabled, kind as group/version/Kind): "true" where enabled is, or is auto and the cluster has the kind. */}}
{{- define "gateway.wants" -}}
{{- $enabled := index . 1 }}
{{- if or (eq (toString $enabled) "true") (and (eq (toString $enabled) "auto") ((index . 0).Capabilities.APIVersions.Has (index . 2))) }}true{{ end }}
{{- end }}
