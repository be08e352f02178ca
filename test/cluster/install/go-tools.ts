/** A program that is built from Go modules, each by a module of its own, since most of them have `replace` lines. */
export interface GoTool {
  readonly name: string
  /** In the name of its folder. */
  readonly version: string
  /** Such as `k8s.io/kubernetes`. */
  readonly module: string
  readonly moduleVersion: string
  /** The package that is built, or whose `RunConformance` a test binary runs. */
  readonly package: string
  /** Default: a program. */
  readonly kind?: 'test'
  /** String variables that the linker sets. */
  readonly variables?: Readonly<Record<string, string>>
  /** Processor seconds of a build on two cores from nothing, and bytes of the program, both about. */
  readonly cpuSeconds: number
  readonly megabytes: number
}

const kubernetes = '1.37.2'

const kubernetesTool = (name: string, cpuSeconds: number, megabytes: number): GoTool => ({
  name,
  version: kubernetes,
  module: 'k8s.io/kubernetes',
  moduleVersion: `v${kubernetes}`,
  package: `k8s.io/kubernetes/cmd/${name}`,
  variables: {
    'k8s.io/component-base/version.gitVersion': `v${kubernetes}`,
    'k8s.io/component-base/version.gitMajor': '1',
    'k8s.io/component-base/version.gitMinor': '37',
  },
  cpuSeconds,
  megabytes,
})

/** In the order of their builds: each shares packages with those before it. */
export const goTools: readonly GoTool[] = [
  kubernetesTool('kube-apiserver', 510, 100),
  kubernetesTool('kube-controller-manager', 160, 80),
  {
    name: 'etcd',
    version: '3.7.3',
    module: 'go.etcd.io/etcd/server/v3',
    moduleVersion: 'v3.7.3',
    package: 'go.etcd.io/etcd/server/v3',
    cpuSeconds: 45,
    megabytes: 25,
  },
  {
    name: 'envoy-gateway',
    version: '1.9.1',
    module: 'github.com/envoyproxy/gateway',
    moduleVersion: 'v1.9.1',
    package: 'github.com/envoyproxy/gateway/cmd/envoy-gateway',
    variables: { 'github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion': 'v1.9.1' },
    cpuSeconds: 300,
    megabytes: 130,
  },
  {
    name: 'pilot-discovery',
    // Istio publishes its releases under tags that Go does not know; this is the last commit that Go has.
    version: '1.31-eed52ebb66ad',
    module: 'istio.io/istio',
    moduleVersion: 'v0.0.0-20260827124520-eed52ebb66ad',
    package: 'istio.io/istio/pilot/cmd/pilot-discovery',
    variables: { 'istio.io/istio/pkg/version.buildVersion': '1.31.0' },
    cpuSeconds: 440,
    megabytes: 110,
  },
  {
    name: 'inference-conformance',
    version: '1.6.0',
    module: 'sigs.k8s.io/gateway-api-inference-extension/conformance',
    moduleVersion: 'v1.6.0',
    kind: 'test',
    package: 'sigs.k8s.io/gateway-api-inference-extension/conformance',
    cpuSeconds: 200,
    megabytes: 80,
  },
  {
    // The engine of the conformance suite.
    name: 'echo-basic',
    version: '1.6.1',
    module: 'sigs.k8s.io/gateway-api/conformance',
    moduleVersion: 'v1.6.1',
    package: 'sigs.k8s.io/gateway-api/conformance/echo-basic',
    cpuSeconds: 30,
    megabytes: 20,
  },
]

/** Checks manifests against schemas; `make test` builds it. */
export const kubeconformTool: GoTool = {
  name: 'kubeconform',
  version: '0.8.0',
  module: 'github.com/yannh/kubeconform',
  moduleVersion: 'v0.8.0',
  package: 'github.com/yannh/kubeconform/cmd/kubeconform',
  cpuSeconds: 10,
  megabytes: 15,
}
