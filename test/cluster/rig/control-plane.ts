import { generateKeyPairSync } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Children, startChild } from '../../../playground/child-process.ts'
import { freePorts } from '../../../playground/free-port.ts'
import { flags, runCommand } from '../../../playground/run-command.ts'
import { startServer } from '../../../playground/start-server.ts'
import { eventually } from '../../support/eventually.ts'
import { folderOf } from '../install/folders.ts'
import { goTools } from '../install/go-tools.ts'
import { type CrdSource, crdsTool } from '../install/install-crds.ts'
import { kubectlTool } from '../install/install-kubectl.ts'
import { hostAddress, serviceNetwork } from './network.ts'

/** etcd, kube-apiserver with RBAC, and the controllers of Deployments, Services, autoscalers and service accounts. */
export interface ControlPlane {
  readonly server: string
  /** Of a user who may do everything. */
  readonly kubeconfigFile: string
  readonly token: string
  /** PEM file with the certificate of the API server. */
  readonly caFile: string
  /** Runs kubectl. @throws Error with what it says */
  kubectl(...args: readonly string[]): Promise<string>
  /** Server-side apply of YAML. @throws Error with what kubectl says */
  apply(yaml: string): Promise<void>
  /** The address of the Service that the flags of `kubectl get services` select, once it is there. */
  serviceAddress(...flags: readonly string[]): Promise<string>
  /** Custom resource definitions; resolves when they are served. */
  installCrds(source: CrdSource): Promise<void>
}

/** The file of a program that `make test-cluster` has built. @throws Error when it is not there */
export const clusterTool = (name: string): string => {
  const tool = [kubectlTool, ...goTools].find((one) => one.name === name)
  if (tool === undefined) throw new Error(`there is no tool ${name}`)
  return join(folderOf(tool), name)
}

const controllers = [
  'deployment-controller',
  'replicaset-controller',
  'endpointslice-controller',
  'disruption-controller',
  'garbage-collector-controller',
  'horizontal-pod-autoscaler-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'root-ca-certificate-publisher-controller',
]

export const startControlPlane = async (folder: string, children: Children): Promise<ControlPlane> => {
  const [etcdPort = 0, peerPort = 0, apiPort = 0, controllerPort = 0] = await freePorts(4)
  const [etcdUrl, peerUrl] = [`http://127.0.0.1:${etcdPort}`, `http://127.0.0.1:${peerPort}`]
  const server = `https://${hostAddress}:${apiPort}`
  const token = 'admin-of-the-rig'
  const keyFile = join(folder, 'service-accounts.key')
  const tokenFile = join(folder, 'tokens.csv')
  const kubeconfigFile = join(folder, 'kubeconfig')
  const caFile = join(folder, 'pki', 'apiserver.crt')
  await mkdir(folder, { recursive: true })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  await writeFile(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }))
  await writeFile(tokenFile, `${token},admin,admin,system:masters\n`)
  const clusters = [{ name: 'rig', cluster: { server, 'certificate-authority': caFile } }]
  const users = [{ name: 'admin', user: { token } }]
  const contexts = [{ name: 'rig', context: { cluster: 'rig', user: 'admin', namespace: 'default' } }]
  const config = { apiVersion: 'v1', kind: 'Config', clusters, users, contexts, 'current-context': 'rig' }
  await writeFile(kubeconfigFile, JSON.stringify(config))

  await startChild({
    name: 'etcd',
    children,
    command: [
      clusterTool('etcd'),
      ...flags({
        'data-dir': join(folder, 'etcd'),
        'listen-client-urls': etcdUrl,
        'advertise-client-urls': etcdUrl,
        'listen-peer-urls': peerUrl,
        'initial-advertise-peer-urls': peerUrl,
        'initial-cluster': `default=${peerUrl}`,
        'unsafe-no-fsync': true,
        'log-level': 'error',
      }),
    ],
  })
  const kubectl = async (...args: readonly string[]): Promise<string> => {
    const command = [clusterTool('kubectl'), '--kubeconfig', kubeconfigFile, ...args] as const
    const outcome = await runCommand({ command, env: { PATH: process.env['PATH'], HOME: folder }, timeoutMs: 180_000 })
    if (!outcome.ok) throw new Error(`kubectl ${args.join(' ')}: ${outcome.stderr || outcome.reason}`)
    return outcome.stdout
  }
  await startServer({
    name: 'kube-apiserver',
    children,
    command: [
      clusterTool('kube-apiserver'),
      ...flags({
        'etcd-servers': etcdUrl,
        'secure-port': apiPort,
        'advertise-address': hostAddress,
        'service-cluster-ip-range': serviceNetwork,
        'cert-dir': join(folder, 'pki'),
        'service-account-issuer': 'https://kubernetes.default.svc',
        'service-account-signing-key-file': keyFile,
        'service-account-key-file': keyFile,
        'token-auth-file': tokenFile,
        'authorization-mode': 'RBAC',
        'endpoint-reconciler-type': 'none',
        'allow-privileged': true,
      }),
    ],
    ready: {
      description: '/readyz of the API server',
      check: () =>
        kubectl('get', '--raw', '/readyz').then(
          () => true,
          () => false,
        ),
    },
  })
  await startChild({
    name: 'kube-controller-manager',
    children,
    command: [
      clusterTool('kube-controller-manager'),
      ...flags({
        kubeconfig: kubeconfigFile,
        'authentication-kubeconfig': kubeconfigFile,
        'authorization-kubeconfig': kubeconfigFile,
        'bind-address': '127.0.0.1',
        'secure-port': controllerPort,
        'service-account-private-key-file': keyFile,
        'root-ca-file': caFile,
        controllers: controllers.join(','),
        'horizontal-pod-autoscaler-sync-period': '1s',
        'horizontal-pod-autoscaler-downscale-stabilization': '5s',
        'cert-dir': join(folder, 'controller-pki'),
      }),
      '--leader-elect=false',
    ],
  })
  let applied = 0
  const apply = async (yaml: string): Promise<void> => {
    applied += 1
    const file = join(folder, `applied-${applied}.yaml`)
    await writeFile(file, yaml)
    await kubectl('apply', '--server-side', '-f', file)
  }
  const serviceAddress = (...flags: readonly string[]): Promise<string> =>
    eventually(async () => {
      const address = await kubectl('get', 'services', ...flags, '-o', 'jsonpath={.items[0].spec.clusterIP}')
      return address === '' ? false : address
    })
  const installCrds = async (source: string): Promise<void> => {
    const from = join(folderOf(crdsTool), source)
    await kubectl('apply', '--server-side', '-f', from)
    await kubectl('wait', '--for=condition=Established', '--timeout=60s', '-f', from)
  }
  return { server, kubeconfigFile, token, caFile, kubectl, apply, serviceAddress, installCrds }
}
