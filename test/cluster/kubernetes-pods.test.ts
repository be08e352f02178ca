import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type ApiServerBed, describeKubernetesPods } from '../contract/routing/kubernetes-pods.ts'
import type { KubernetesObject } from '../support/fake-api-server.ts'
import { hostAddress } from './rig/network.ts'
import { type Rig, startRig } from './rig/rig.ts'

/** The suite of pods from Kubernetes on a real API server. */
let rig: Rig
const made = new Map<string, string>()
const otherAddress = '10.244.0.2'
const kinds: Readonly<Record<string, string>> = {
  Pod: 'pod',
  EndpointSlice: 'endpointslice',
  InferencePool: 'inferencepool',
}

beforeAll(async () => {
  rig = await startRig()
  await rig.network.addService(otherAddress)
  await rig.installCrds('inference-extension')
})
afterAll(() => rig?.stop())

const bed = (): ApiServerBed => ({
  cluster: { server: rig.server, 'certificate-authority': rig.caFile },
  token: rig.token,
  hosts: [hostAddress, otherAddress],
  put: async (_path, object: KubernetesObject) => {
    const { status, ...rest } = object
    const kind = kinds[String(object['kind'])] ?? ''
    const { name } = object.metadata
    made.set(`${kind}/${name}`, kind)
    await rig.apply(JSON.stringify(rest))
    if (status === undefined) return
    const patch = JSON.stringify({ status })
    await rig.kubectl('patch', kind, name, '--subresource=status', '--type=merge', '-p', patch)
  },
  remove: async (path, name) => {
    const [kind = ''] = Object.values(kinds).filter((one) => path.endsWith(`${one}s`))
    await rig.kubectl('delete', kind, name, '--wait=false')
  },
  clear: async () => {
    for (const [name, kind] of made) {
      if (kind === 'pod') {
        await rig
          .kubectl('patch', name, '--type=merge', '-p', '{"metadata":{"finalizers":null}}')
          .catch(() => undefined)
      }
      await rig.kubectl('delete', name, '--ignore-not-found', '--grace-period=0', '--force')
    }
    made.clear()
  },
})

describeKubernetesPods(bed)

test('the API server is the one that the table of docs/kubernetes.md names', async () => {
  expect(JSON.parse(await rig.kubectl('get', '--raw', '/version'))).toMatchObject({ gitVersion: 'v1.37.2' })
})
