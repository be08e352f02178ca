import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePorts } from '../../../playground/free-port.ts'
import { findEnvoy } from '../../../playground/install/find-envoy.ts'
import { packageRoot, toolsDir } from '../../../playground/paths.ts'
import { flags } from '../../../playground/run-command.ts'
import { startServer } from '../../../playground/start-server.ts'
import { clusterTool } from './control-plane.ts'
import { hostAddress } from './network.ts'
import { isOpen } from './probes.ts'
import type { Rig } from './rig.ts'

const istioVersion = '1.31.0'
/** istiod with the Gateway API inference extension, and what it needs to serve Gateways. */
export interface Istiod {
  /** Runs Envoys as the Gateway `name`, which may not exist yet. Resolves with its Service's address for clients. */
  runGateway(gateway: GatewayName): Promise<string>
}

export const startIstiod = async (rig: Rig): Promise<Istiod> => {
  await rig.installCrds('gateway-api')
  await rig.installCrds('inference-extension')
  await rig.installCrds('istio')
  await rig.kubectl('create', 'namespace', 'istio-system')
  const folder = join(rig.folder, 'istiod')
  await mkdir(folder)
  const meshFile = join(folder, 'mesh.yaml')
  const defaultProviders = { metrics: [], accessLogging: [], tracing: [] }
  await writeFile(meshFile, stringify({ defaultProviders, enablePrometheusMerge: false, enableAutoMtls: false }))
  const [grpcPort = 0, httpPort = 0, secureGrpcPort = 0, httpsPort = 0, monitoringPort = 0] = await freePorts(5)
  await startServer({
    name: 'istiod',
    command: [
      clusterTool('pilot-discovery'),
      'discovery',
      ...flags({
        kubeconfig: rig.kubeconfigFile,
        meshConfig: meshFile,
        httpAddr: `127.0.0.1:${httpPort}`,
        grpcAddr: `${hostAddress}:${grpcPort}`,
        secureGRPCAddr: `127.0.0.1:${secureGrpcPort}`,
        httpsAddr: `127.0.0.1:${httpsPort}`,
        monitoringAddr: `127.0.0.1:${monitoringPort}`,
        namespace: 'istio-system',
      }),
    ],
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      ENABLE_GATEWAY_API_INFERENCE_EXTENSION: 'true',
      SUPPORT_GATEWAY_API_INFERENCE_EXTENSION: 'true',
      PILOT_ENABLE_ALPN_FILTER: 'false',
      PILOT_ENABLE_METADATA_EXCHANGE: 'false',
      PILOT_ENABLE_TELEMETRY_LABEL: 'false',
      PILOT_DISABLE_MX_ALPN: 'true',
      POD_NAMESPACE: 'istio-system',
      POD_NAME: 'istiod-0',
      CLUSTER_ID: 'Kubernetes',
      REVISION: 'default',
      INJECTION_WEBHOOK_CONFIG_NAME: '',
      VALIDATION_WEBHOOK_CONFIG_NAME: '',
      ENABLE_LEADER_ELECTION: 'false',
    },
    children: rig.children,
    onLine: (line) => rig.log(`istiod: ${line}`),
    // Its page is never ready without the webhooks of its chart.
    ready: { description: 'the port for Envoys', check: () => isOpen(hostAddress, grpcPort) },
  })
  const drain = await readFile(join(packageRoot(), 'deploy/helm/context-cache-gateway/files/drain.sh'), 'utf8')
  const drainFile = join(folder, 'drain.sh')
  await writeFile(drainFile, drain.replace('http.clients.', 'http.outbound_.*'))
  const envoy = await findEnvoy({ env: process.env, toolsDir: toolsDir() })

  const runGateway: Istiod['runGateway'] = async ({ namespace, name }) => {
    const file = join(folder, `${name}.yaml`)
    await writeFile(file, bootstrapOf({ namespace, name, grpcPort }))
    const run = `exec ${envoy.command[0]} -c /tmp/envoy.yaml --disable-hot-restart --concurrency 1 -l warning`
    const start = `sed -e s/POD_IP/$POD_IP/g -e s/POD_NAME/$POD_NAME/g ${file} > /tmp/envoy.yaml && ${run}`
    rig.images['istio-envoy'] = { entrypoint: [] }
    await rig.apply(podsOf({ namespace, name, command: ['bash', '-c', start], drainFile }))
    const label = `gateway.networking.k8s.io/gateway-name=${name}`
    const address = await rig.serviceAddress('-n', namespace, '-l', label)
    const patch = JSON.stringify({ status: { loadBalancer: { ingress: [{ ip: address }] } } })
    await rig.kubectl('patch', 'service', `${name}-istio`, '-n', namespace, '--subresource=status', '-p', patch)
    return address
  }
  return { runGateway }
}

interface GatewayName {
  readonly namespace: string
  readonly name: string
}

/** What Envoy starts with; its pod fills in who it is. */
const bootstrapOf = ({ namespace, name, grpcPort }: GatewayName & { readonly grpcPort: number }): string => `
node:
  id: router~POD_IP~POD_NAME.${namespace}~${namespace}.svc.cluster.local
  cluster: ${name}.${namespace}
  metadata:
    LABELS: { gateway.networking.k8s.io/gateway-name: ${name} }
    NAMESPACE: ${namespace}
    CLUSTER_ID: Kubernetes
    ISTIO_VERSION: ${istioVersion}
    INSTANCE_IPS: POD_IP
    NAME: POD_NAME
    WORKLOAD_NAME: ${name}
    MESH_ID: cluster.local
dynamic_resources:
  lds_config: { ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s }
  cds_config: { ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s }
  ads_config:
    api_type: GRPC
    transport_api_version: V3
    set_node_on_first_message_only: true
    grpc_services: [{ envoy_grpc: { cluster_name: xds-grpc } }]
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 19901 } } }
static_resources:
  clusters:
    - name: xds-grpc
      type: STATIC
      connect_timeout: 1s
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: { http2_protocol_options: {} }
      load_assignment:
        cluster_name: xds-grpc
        endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: ${hostAddress}, port_value: ${grpcPort} } } } }] }]
`

/** Two Envoys, of which one may be away, and their Service. */
const podsOf = (of: GatewayName & { readonly command: readonly string[]; readonly drainFile: string }): string => {
  const labels = `{ gateway.networking.k8s.io/gateway-name: ${of.name} }`
  const metadata = `{ name: ${of.name}-istio, namespace: ${of.namespace}, labels: ${labels} }`
  return `
apiVersion: apps/v1
kind: Deployment
metadata: ${metadata}
spec:
  replicas: 2
  selector: { matchLabels: ${labels} }
  template:
    metadata: { labels: ${labels} }
    spec:
      terminationGracePeriodSeconds: 80
      containers:
        - name: envoy
          image: istio-envoy
          command: ${JSON.stringify(of.command)}
          env:
            - { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
            - { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
          readinessProbe: { tcpSocket: { port: 80 } }
          # What Istio's own pods do with EXIT_ON_ZERO_ACTIVE_CONNECTIONS.
          lifecycle: { preStop: { exec: { command: [bash, ${of.drainFile}, "60"] } } }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: ${metadata}
spec: { maxUnavailable: 1, selector: { matchLabels: ${labels} } }
---
apiVersion: v1
kind: Service
metadata: ${metadata}
spec:
  type: LoadBalancer
  allocateLoadBalancerNodePorts: false
  selector: ${labels}
  ports: [{ name: http, port: 80 }]
`
}
