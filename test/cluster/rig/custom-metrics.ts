import { createServer } from 'node:https'
import { makeCertificate } from '../../support/certificates.ts'
import { metricsPages } from './metrics-pages.ts'
import { hostAddress } from './network.ts'
import type { Rig } from './rig.ts'

const group = 'custom.metrics.k8s.io'
const version = 'v1beta2'
const groupVersion = `${group}/${version}`

/**
 * What a metrics adapter does, in this process: the API server passes it requests for a metric of pods, and it answers
 * with what their pages show at that moment, one sum for each pod, until the rig stops.
 */
export const startCustomMetrics = async (rig: Rig): Promise<void> => {
  const server = createServer(await makeCertificate('metrics'), (request, response) => {
    const answer = answerTo(rig, new URL(request.url ?? '', 'https://metrics'))
    const send = (body: object | undefined): void => {
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body ?? {}))
    }
    answer.then(send, (error: unknown) => {
      rig.log(`metrics: ${String(error)}`)
      response.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, hostAddress, resolve))
  server.unref()
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  await rig.apply(`
apiVersion: v1
kind: Service
metadata: { name: metrics }
spec: { type: ExternalName, externalName: ${hostAddress} }
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: { name: ${version}.${group} }
spec:
  group: ${group}
  version: ${version}
  groupPriorityMinimum: 100
  versionPriority: 100
  service: { name: metrics, namespace: default, port: ${port} }
  insecureSkipTLSVerify: true
`)
  await rig.kubectl('wait', 'apiservice', `${version}.${group}`, '--for=condition=Available', '--timeout=60s')
}

const answerTo = async (rig: Rig, { pathname, searchParams }: URL): Promise<object | undefined> => {
  if (pathname === `/apis/${groupVersion}`) {
    const resource = { name: 'pods/*', singularName: '', namespaced: true, kind: 'MetricValueList', verbs: ['get'] }
    return { apiVersion: 'v1', kind: 'APIResourceList', groupVersion, resources: [resource] }
  }
  const [, name] = /\/namespaces\/default\/pods\/\*\/(\w+)$/.exec(decodeURIComponent(pathname)) ?? []
  if (name === undefined) return undefined
  const items = (await metricsPages(rig, searchParams.get('labelSelector') ?? '')).flatMap(({ pod, page }) => {
    const samples = [...page.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))]
    if (samples.length === 0) return []
    const sum = samples.reduce((total, [, value]) => total + Number(value), 0)
    const describedObject = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: pod }
    return [{ describedObject, metric: { name }, timestamp: new Date().toISOString(), value: String(sum) }]
  })
  return { apiVersion: groupVersion, kind: 'MetricValueList', metadata: {}, items }
}
