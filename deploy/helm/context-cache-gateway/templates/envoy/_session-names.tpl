{{- /* Clients' names for conversations, in Envoy's filters and routes: those of the gateway's configuration, where it has a list. */}}
{{- define "gateway.sessionNames" -}}
{{- $host := index .hcm.route_config.virtual_hosts 0 }}
{{- $names := dig "sessions" "implicit" "names" nil .Values.config }}
{{- $chosen := kindIs "slice" $names }}
{{- $off := and $chosen (or (not $names) (has "off" $names)) }}
{{- $members := .Values.envoy.bodyNames }}
{{- $headers := list }}
{{- range $name := ternary $names list $chosen }}
{{- if hasPrefix "body." $name }}
{{- $members = append $members (trimPrefix "body." $name) }}
{{- else if ne $name "off" }}
{{- $headers = append $headers $name }}
{{- end }}
{{- end }}
{{- /* Routes of names are those of a turn, each with one header. That of x-session-id is also for the gateway's own ids. */}}
{{- $known := list }}
{{- range $route := $host.routes }}
{{- if hasKey ($route.typed_per_filter_config | default dict) "session_names" }}
{{- $known = append $known (index $route.match.headers 0).name }}
{{- end }}
{{- end }}
{{- $gone := list }}
{{- if $chosen }}
{{- range $name := without $known "x-session-id" "x-context-name" }}
{{- if not (has $name $headers) }}{{ $gone = append $gone $name }}{{ end }}
{{- end }}
{{- if has "x-claude-code-session-id" $gone }}{{ $gone = append $gone "x-claude-code-agent-id" }}{{ end }}
{{- if $off }}{{ $gone = concat $gone (list "x-context-model" "x-context-name" "x-context-marks" "x-context-ttl" "x-context-body") }}{{ end }}
{{- end }}
{{- $routes := list }}
{{- range $route := $host.routes }}
{{- $header := dig "name" "" (first ($route.match.headers | default list) | default dict) }}
{{- if eq $header "x-context-name" }}
{{- range $name := $headers }}
{{- if not (has $name $known) }}
{{- $own := deepCopy $route }}
{{- $_ := set $own.match "headers" (list (dict "name" $name "present_match" true)) }}
{{- $routes = append $routes $own }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq $header "x-session-id") $chosen (not (has $header $headers)) }}
{{- $_ := unset $route.typed_per_filter_config "session_names" }}
{{- end }}
{{- if not (has $header $gone) }}{{ $routes = append $routes $route }}{{ end }}
{{- end }}
{{- $_ := set $host "routes" $routes }}
{{- $filters := list }}
{{- range $filter := .hcm.http_filters }}
{{- if eq $filter.name "envoy.filters.http.ext_proc" }}
{{- $patterns := list }}
{{- range $pattern := $filter.typed_config.forward_rules.allowed_headers.patterns }}
{{- if not (has $pattern.exact $gone) }}{{ $patterns = append $patterns $pattern }}{{ end }}
{{- end }}
{{- range $name := $headers }}
{{- if not (has (dict "exact" $name) $patterns) }}{{ $patterns = append $patterns (dict "exact" $name) }}{{ end }}
{{- end }}
{{- $_ := set $filter.typed_config.forward_rules.allowed_headers "patterns" $patterns }}
{{- end }}
{{- if not (and $off (eq $filter.name "session_names")) }}{{ $filters = append $filters $filter }}{{ end }}
{{- end }}
{{- $_ := set .hcm "http_filters" $filters }}
{{- if and $members (not $off) }}
{{- /* The edit that envoy.yaml describes. A filter that the first route disables altogether does not run on the route that the name leads to. */}}
{{- $types := "type.googleapis.com/envoy.extensions.filters.http" }}
{{- range $per := .bypass }}
{{- $_ := set $per "session_names" (dict "@type" (printf "%s.lua.v3.LuaPerRoute" $types) "filter_context" (dict "members" (uniq $members | join " ") "pick" true)) }}
{{- $_ := set $per "envoy.filters.http.ext_proc" (dict "@type" (printf "%s.ext_proc.v3.ExtProcPerRoute" $types) "disabled" true) }}
{{- if hasKey $per "envoy.filters.http.lua" }}
{{- $_ := set $per "envoy.filters.http.lua" (dict "@type" (printf "%s.lua.v3.LuaPerRoute" $types) "disabled" true) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
