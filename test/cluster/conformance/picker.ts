// What stands for the suite's own picker (lwepp): the gateway, behind an adapter that translates what the suite says to
// its picker alone. Every decision and every byte of a body is the gateway's.
//   test-epp-endpoint-selection   the pods that the picker may choose: told the gateway as the protocol's subset hint
//   x-conformance-test-served-endpoint   set on responses to the pod that Envoy says served
//   paths   the suite's are no inference paths, which the gateway answers with 404: it is told an inference path
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { Client, credentials, Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { startChild } from '../../../playground/child-process.ts'
import { packageRoot } from '../../../playground/paths.ts'

const { values } = parseArgs({
  options: {
    'pool-name': { type: 'string', default: '' },
    'pool-namespace': { type: 'string', default: '' },
    'grpc-port': { type: 'string', default: '9002' },
    'grpc-health-port': { type: 'string', default: '9003' },
    'zap-encoder': { type: 'string' },
  },
})

const gateway = await startChild({
  name: 'gateway',
  command: [process.execPath, join(packageRoot(), 'dist/src/main.js'), 'serve'],
  env: {
    ...process.env,
    CONNECTOR: 'none',
    CTX_TENANT_SECRET: 'a secret of the conformance tests that is long enough',
    CTX_ROUTING_KUBERNETES_NAMESPACE: values['pool-namespace'],
    CTX_ROUTING_KUBERNETES_INFERENCE_POOL: values['pool-name'],
  },
  onLine: (line) => void process.stderr.write(`${line}\n`),
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => void gateway.stop().then(() => process.exit()))
}

interface WireHeader {
  key: string
  raw_value: Buffer
}
interface WireRequest {
  request_headers?: { headers: { headers: WireHeader[] } }
  response_headers?: object
  metadata_context?: { filter_metadata?: Record<string, { fields?: Record<string, { stringValue?: string }> }> }
}
interface WireResponse {
  response_headers?: { response?: { header_mutation?: { set_headers?: object[] } } }
}

const load = (file: string, service: string): ServiceDefinition =>
  loadSync(createRequire(import.meta.url).resolve(`#protos/${file}`), { keepCase: true, longs: Number, oneofs: true })[
    service
  ] as ServiceDefinition
const processor = load('external-processor.proto', 'envoy.service.ext_proc.v3.ExternalProcessor')
const health = load('health.proto', 'grpc.health.v1.Health')
const { Process: method } = processor
const { Check: check } = health
if (method === undefined || check === undefined) throw new Error('the protocol is not there')
const client = new Client('127.0.0.1:50051', credentials.createInsecure())
const destination = 'x-gateway-destination-endpoint'

const translateRequest = (request: WireRequest): WireRequest => {
  const headers = request.request_headers?.headers.headers
  if (headers === undefined) return request
  const headerOf = (name: string): string | undefined => headers.find(({ key }) => key === name)?.raw_value.toString()
  const path = headerOf(':method') === 'POST' ? '/v1/completions' : '/v1/models'
  for (const header of headers) if (header.key === ':path') header.raw_value = Buffer.from(path)
  const selection = headerOf('test-epp-endpoint-selection')
  if (selection === undefined) return request
  const hint = { fields: { [`${destination}-subset`]: { stringValue: selection } } }
  const metadata = { ...request.metadata_context?.filter_metadata, 'envoy.lb.subset_hint': hint }
  return { ...request, metadata_context: { filter_metadata: metadata } }
}

const translateResponse = (response: WireResponse, served: string): WireResponse => {
  if (response.response_headers === undefined) return response
  const { header_mutation: mutation = {}, ...others } = response.response_headers.response ?? {}
  const header = { key: 'x-conformance-test-served-endpoint', raw_value: Buffer.from(served) }
  const set_headers = [...(mutation.set_headers ?? []), { header, append_action: 2 }]
  return { ...response, response_headers: { response: { ...others, header_mutation: { ...mutation, set_headers } } } }
}

const server = new Server()
server.addService(processor, {
  Process: (call: import('@grpc/grpc-js').ServerDuplexStream<WireRequest, WireResponse>) => {
    let served = ''
    const onward = client.makeBidiStreamRequest<WireRequest, WireResponse>(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
    )
    call.on('data', (request: WireRequest) => {
      const { fields } = request.metadata_context?.filter_metadata?.['envoy.lb'] ?? {}
      served = fields?.[`${destination}-served`]?.stringValue ?? served
      onward.write(translateRequest(request))
    })
    call.on('end', () => onward.end()).on('cancelled', () => onward.cancel())
    onward.on('data', (response: WireResponse) => call.write(translateResponse(response, served)))
    onward.on('end', () => call.end()).on('error', (error) => call.destroy(error))
  },
})
server.addService(health, {
  Check: (_call: unknown, callback: import('@grpc/grpc-js').sendUnaryData<object>) => {
    const request = { service: 'readiness' }
    client.makeUnaryRequest(check.path, check.requestSerialize, check.responseDeserialize, request, (error, answer) =>
      callback(error, (answer as object | undefined) ?? null),
    )
  },
})
for (const port of [values['grpc-port'], values['grpc-health-port']].map(Number)) {
  await promisify(server.bindAsync.bind(server))(`0.0.0.0:${port}`, ServerCredentials.createInsecure())
}
