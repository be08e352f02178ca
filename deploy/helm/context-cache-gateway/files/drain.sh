#!/bin/bash
# Lets the answers in flight end before Envoy stops: new connections go elsewhere, open ones close with their next answer.
set -u
admin() {
  exec 3<>/dev/tcp/127.0.0.1/19901 || return 1
  printf '%s HTTP/1.1\r\nhost: envoy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n' "$1" >&3
  cat <&3
  exec 3>&-
}
admin 'POST /healthcheck/fail' >/dev/null
sleep 5 # the Service forgets this pod
admin 'POST /drain_listeners?graceful&skip_exit' >/dev/null
sleep 10 # Envoy's drain time: connections in use close with an answer
deadline=$((SECONDS + $1))
while [ "$SECONDS" -lt "$deadline" ]; do
  case "$(admin 'GET /stats?filter=^http.clients.downstream_rq_active$')" in *'downstream_rq_active: 0'*) exit 0 ;; esac
  sleep 1
done
