/**
 * The largest body of a request that Envoy passes by envoy.yaml, deploy/envoy and deploy/envoy-gateway, bytes (a test
 * compares them). A larger one gets Envoy's own 413; one above `maxBodyBytes` has to arrive to get the gateway's.
 */
export const envoyBodyBytes = 16 * 1024 * 1024
