import { afterAll, beforeAll } from '@jest/globals'
import { type FakeApiServer, startFakeApiServer } from '../../support/fake-api-server.ts'
import { type ApiServerBed, describeKubernetesPods } from './kubernetes-pods.ts'

/** The same suite runs on a real kube-apiserver: test/cluster/kubernetes-pods.test.ts. */
let server: FakeApiServer
const made = new Map<string, string>()

const bed = (): ApiServerBed => ({
  cluster: { server: server.url, 'insecure-skip-tls-verify': true },
  token: 'token',
  hosts: ['127.0.0.1', '127.0.0.2'],
  put: async (path, object) => {
    made.set(object.metadata.name, path)
    server.put(path, object)
  },
  remove: async (path, name) => {
    made.delete(name)
    server.remove(path, name)
  },
  clear: async () => {
    for (const [name, path] of made) server.remove(path, name)
    made.clear()
  },
})

beforeAll(async () => {
  server = await startFakeApiServer()
})
afterAll(() => server.stop())

describeKubernetesPods(bed)
