import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { newSessionId } from '../../../src/context/session-id.ts'
import { errorCodes } from '../../../src/openai/error-codes.ts'
import { toErrorResponse } from '../../../src/openai/gateway-error.ts'
import { policyNames } from '../../../src/routing/policies.ts'
import { createContextGateway, type GatewaySettings, podA, type SentRequest } from '../../support/context-gateway.ts'
import { answerBody, forwarded, rejection } from '../../support/decisions.ts'
import {
  codesOf,
  type DocumentedInterface,
  type DocumentedOperation,
  fits,
  readOpenApi,
} from '../../support/openapi.ts'

let api: DocumentedInterface

beforeAll(async () => {
  api = await readOpenApi()
})

const operation = (operationId: string): DocumentedOperation => {
  const found = api.operations.find((candidate) => candidate.operationId === operationId)
  if (found === undefined) throw new Error(`${operationId} is not documented`)
  return found
}

const responseOf = (operationId: string, status: number) => {
  const found = operation(operationId).responses.find((response) => response.status === status)
  if (found === undefined) throw new Error(`${operationId} has no response ${status}`)
  return found
}

const bodies: Readonly<Record<string, object>> = {
  '/v1/completions': { model: 'm', prompt: 'hi' },
  '/v1/chat/completions': { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  '/v1/responses': { model: 'm', input: 'hi' },
  '/v1/messages': { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
}

const contextPaths = ['/v1/context', '/v1/context/{id}', '/v1/context/{id}/fork']
const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

describe('docs/api/openapi.yaml', () => {
  test('describes the paths and methods of the gateway in OpenAPI 3.1', () => {
    expect(api.openapi).toMatch(/^3\.1\.\d+$/)
    expect(api.operations.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/context',
      'GET /v1/context',
      'GET /v1/context/{id}',
      'PATCH /v1/context/{id}',
      'DELETE /v1/context/{id}',
      'POST /v1/context/{id}/fork',
      'POST /v1/completions',
      'POST /v1/chat/completions',
      'POST /v1/responses',
      'POST /v1/messages',
      'GET /v1/responses/{id}',
      'DELETE /v1/responses/{id}',
      'GET /v1/responses/{id}/input_items',
      'POST /v1/responses/{id}/cancel',
      'POST /v1/conversations',
      'GET /v1/conversations/{id}',
      'POST /v1/conversations/{id}',
      'DELETE /v1/conversations/{id}',
      'GET /v1/conversations/{id}/items',
      'POST /v1/conversations/{id}/items',
      'GET /v1/conversations/{id}/items/{item_id}',
      'DELETE /v1/conversations/{id}/items/{item_id}',
    ])
  })

  test('has each method of a context path that the gateway answers, and no other', async () => {
    const gateway = createContextGateway()
    const answered = await Promise.all(
      contextPaths.flatMap((path) =>
        allMethods.map(async (method) => {
          const decision = await gateway.send({ method, path: path.replace('{id}', newSessionId()), body: {} })
          const isAllowed = decision.kind !== 'reject' || decision.error.code !== 'method_not_allowed'
          return isAllowed ? [`${method} ${path}`] : []
        }),
      ),
    )
    const documented = api.operations
      .filter(({ path }) => contextPaths.includes(path))
      .map(({ method, path }) => `${method} ${path}`)

    expect(answered.flat().sort()).toEqual([...documented].sort())
  })

  test.each(Object.keys(bodies))('has the body of %s', (path) => {
    const documented = api.operations.find((candidate) => candidate.path === path)

    expect(fits(documented?.requestSchema, bodies[path])).toBe(true)
  })
})

describe('its errors', () => {
  const envoyCodes = async (): Promise<readonly string[]> => {
    const docs = await readFile(new URL('../../../docs/errors.md', import.meta.url), 'utf8')
    const [, replies = ''] = docs.split('## Replies of Envoy')
    return [...replies.matchAll(/^\| \d{3}[^|]*\| `(\w+)`/gm)].map(([, code = '']) => code)
  }

  test('exist, each under its own status', async () => {
    const envoy = await envoyCodes()
    const misplaced = api.operations.flatMap(({ operationId, responses }) =>
      responses.flatMap((response) =>
        codesOf(response)
          .filter((code) =>
            code in errorCodes
              ? errorCodes[code as keyof typeof errorCodes].status !== response.status
              : !envoy.includes(code),
          )
          .map((code) => `${operationId} ${response.status} ${code}`),
      ),
    )

    expect(misplaced).toEqual([])
  })

  test('are named wherever there is a response of 400 and above', () => {
    const unnamed = api.operations.flatMap(({ operationId, responses }) =>
      responses
        .filter((response) => response.status >= 400 && codesOf(response).length === 0)
        .map(({ status }) => `${operationId} ${status}`),
    )

    expect(unnamed).toEqual([])
  })

  test('are all of the gateway’s, apart from those that belong to no operation', () => {
    const named = new Set(api.operations.flatMap(({ responses }) => responses.flatMap(codesOf)))

    expect(Object.keys(errorCodes).filter((code) => !named.has(code))).toEqual(['method_not_allowed'])
  })

  const id = newSessionId()
  const path = `/v1/context/${id}`
  const requests: Readonly<Record<string, SentRequest>> = {
    createContext: { path: '/v1/context', body: bodies['/v1/completions'] },
    listContexts: { method: 'GET', path: '/v1/context' },
    getContext: { method: 'GET', path },
    updateContext: { method: 'PATCH', path, body: {} },
    deleteContext: { method: 'DELETE', path },
    forkContext: { path: `${path}/fork` },
    createCompletion: { path: '/v1/completions', headers: { 'x-session-id': id } },
    createMessage: { path: '/v1/messages?beta=true', headers: { 'x-session-id': id } },
  }
  interface Row extends Partial<SentRequest> {
    readonly settings?: GatewaySettings
    readonly isStoreDown?: boolean
    readonly isPodDown?: boolean
  }

  test.each<readonly [operationId: string, name: string, row: Row]>([
    ['createContext', 'a bad TTL', { headers: { 'x-session-ttl': 'x' } }],
    ['createContext', 'a TTL of a second', { headers: { 'x-session-ttl': '1' } }],
    ['createContext', 'a body that is not JSON', { body: Buffer.from('{') }],
    ['createContext', 'a body that is not UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }],
    ['createContext', 'deep JSON', { body: Buffer.from('['.repeat(100)) }],
    ['createContext', 'two models', { body: Buffer.from('{"model":"a","model":"b","prompt":"x"}') }],
    ['createContext', 'no model', { body: { prompt: 'x' } }],
    ['createContext', 'an empty prompt', { body: { model: 'm', prompt: '' } }],
    ['createContext', 'an unknown policy', { headers: { 'routing-strategy': 'x' } }],
    ['createContext', 'a bad idempotency key', { headers: { 'idempotency-key': '' } }],
    ['createContext', 'no credential', { headers: { authorization: [] } }],
    ['createContext', 'another content type', { headers: { 'content-type': 'text/plain' } }],
    ['createContext', 'any request while the store is down', { isStoreDown: true }],
    ['createContext', 'any request while no pod is ready', { isPodDown: true }],
    ['listContexts', 'a bad page', { path: '/v1/context?limit=0' }],
    ['listContexts', 'any request while the store is down', { isStoreDown: true }],
    ['getContext', 'an unknown id', {}],
    ['getContext', 'any request while the store is down', { isStoreDown: true }],
    ['updateContext', 'a body without ttl', {}],
    ['updateContext', 'a bad ttl', { body: { ttl: 'x' } }],
    ['updateContext', 'a compressed body', { headers: { 'content-encoding': 'gzip' } }],
    ['deleteContext', 'an unknown id', {}],
    ['forkContext', 'an unknown id', {}],
    ['forkContext', 'a bad TTL', { headers: { 'x-session-ttl': 'x' } }],
    ['forkContext', 'any request while the store is down', { isStoreDown: true }],
    ['createCompletion', 'two ids', { headers: { 'x-session-id': [id, id] } }],
    ['createCompletion', 'a compressed body', { headers: { 'x-session-id': id, 'content-encoding': 'gzip' } }],
    ['createCompletion', 'an unknown id where it is rejected', { settings: { unknownSession: 'reject' } }],
    ['createCompletion', 'a turn while no pod is ready', { isPodDown: true }],
    ['createMessage', 'two ids', { headers: { 'x-session-id': [id, id] } }],
    ['createMessage', 'an unknown id where it is rejected', { settings: { unknownSession: 'reject' } }],
    ['createCompletion', 'a create without prompt', { body: { model: 'm' }, headers: { 'x-session-ttl': '60' } }],
  ])('have what %s answers to %s', async (operationId, _name, row) => {
    const gateway = createContextGateway({ pods: [podA], ...row.settings })
    gateway.store.breakDown(row.isStoreDown === true ? 'all' : [])
    gateway.pods.setReady(podA, row.isPodDown !== true)

    const error = rejection(await gateway.send({ path: '', ...requests[operationId], ...row }))
    const { status, headers, body } = toErrorResponse(error, requests[operationId]?.path)
    const documented = responseOf(operationId, status)

    expect(codesOf(documented)).toContain(error.code)
    expect(fits(documented.schemas['application/json'], body)).toBe(true)
    expect(Object.keys(documented.headers)).toEqual(expect.arrayContaining(Object.keys(headers)))
  })
})

describe('its answers', () => {
  test.each([
    { name: 'that has run', answer: {} },
    { name: 'that left nothing in the store', answer: { servedBy: null } },
  ])('show a session $name', async ({ answer }) => {
    const gateway = createContextGateway()
    const { id } = await gateway.create({}, answer)
    const path = `/v1/context/${id}`
    const schema = (operationId: string) => responseOf(operationId, 200).schemas['application/json']

    const shown = answerBody(await gateway.send({ method: 'GET', path }))
    const listed = answerBody(await gateway.send({ method: 'GET', path: '/v1/context' }))
    const changed = answerBody(await gateway.send({ method: 'PATCH', path, body: { ttl: 60 } }))
    const forked = answerBody(await gateway.send({ path: `${path}/fork` }))
    const deleted = answerBody(await gateway.send({ method: 'DELETE', path }))
    const empty = answerBody(await gateway.send({ method: 'GET', path: '/v1/context' }))

    expect(fits(schema('getContext'), shown)).toBe(true)
    expect(fits(schema('listContexts'), listed)).toBe(true)
    expect(fits(schema('updateContext'), changed)).toBe(true)
    expect(fits(schema('forkContext'), forked)).toBe(true)
    expect(fits(schema('deleteContext'), deleted)).toBe(true)
    expect(fits(schema('listContexts'), empty)).toBe(true)
    expect(fits(schema('getContext'), { ...(shown as object), prompt: 'hi' })).toBe(false)
  })

  test('carry the session headers', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    const created = forwarded(await gateway.send({ path: '/v1/context', body: bodies['/v1/completions'] }))
    await gateway.serve(created)
    const id = created.responseHeaders['x-session-id'] ?? ''
    const resident = await gateway.use(id)
    await gateway.serve(resident)
    gateway.fleet.restart(podA)
    const loaded = await gateway.use(id)
    gateway.connector.faults.refuse('load', true)
    gateway.fleet.restart(podA)
    const failed = await gateway.use(id)
    const unknown = await gateway.use(newSessionId())
    const answers = [
      { operationId: 'createContext', forward: created },
      ...[resident, loaded, failed, unknown].map((forward) => ({ operationId: 'createCompletion', forward })),
    ]

    const misfits = answers.flatMap(({ operationId, forward }) => {
      const { headers } = responseOf(operationId, 200)
      return Object.entries(forward.responseHeaders).filter(([name, value]) => !fits(headers[name] ?? false, value))
    })

    expect(misfits).toEqual([])
  })

  test('have examples of headers that fit', () => {
    expect(api.headerExamples.length).toBeGreaterThan(0)
    expect(api.headerExamples.filter(({ schema, value }) => !fits(schema, value))).toEqual([])
  })
})

describe('its parameters', () => {
  const schemaOf = (name: string) =>
    api.operations.flatMap(({ parameters }) => parameters).find((parameter) => parameter.name === name)?.schema

  test('list every routing policy', () => {
    expect(policyNames.filter((name) => !fits(schemaOf('routing-strategy'), name))).toEqual([])
    expect(fits(schemaOf('routing-strategy'), 'fastest')).toBe(false)
  })

  test.each([
    { name: 'x-session-id', good: [newSessionId(), 'a name'], bad: ['', 'n'.repeat(257)] },
    { name: 'x-session-ttl', good: ['1', '3600', '999999999'], bad: ['0', '-1', '1e3', '1000000000', ''] },
    { name: 'Idempotency-Key', good: ['k', 'a b', '~'.repeat(255)], bad: ['', 'é', 'k'.repeat(256)] },
    { name: 'id', good: [newSessionId()], bad: ['..%2f..'] },
    { name: 'after', good: [newSessionId()], bad: ['x'] },
    { name: 'limit', good: [1, 100], bad: [0, 101, 1.5] },
  ])('take for $name what the gateway takes', ({ name, good, bad }) => {
    const schema = schemaOf(name)

    expect(good.filter((value) => !fits(schema, value))).toEqual([])
    expect(bad.filter((value) => fits(schema, value))).toEqual([])
  })
})
