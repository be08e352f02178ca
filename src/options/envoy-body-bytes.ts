/**
 * The largest body of a request that Envoy passes by the files of this repository, bytes. A larger one gets Envoy's own
 * 413; one above `maxBodyBytes` has to arrive to get the gateway's. envoy.yaml, deploy/envoy and deploy/envoy-gateway
 * say the same, and a test holds them against it.
 */
export const envoyBodyBytes = 16 * 1024 * 1024
