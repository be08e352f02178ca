import * as promises from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { loadConnector } from '../../../src/kvcache/load-connector.ts'
import { anySignal, newSession, turnOf } from '../../contract/kvcache/kv-test-bed.ts'
import { connectorParts } from '../../support/connector-parts.ts'

const { mkdtemp, rm, writeFile } = promises
const kv = { isolation: 'tenant', callTimeoutMs: 1_000, minTokens: 1, directory: '/kv' } as const
const created = async (path: string) => (await loadConnector(path, 200)).create(kv, connectorParts({ maxTurnMs: 7 }))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'connectors-'))
})
afterAll(() => rm(folder, { recursive: true }))

const moduleOf = async (name: string, text: string): Promise<string> => {
  const path = join(folder, `${name}.mjs`)
  await writeFile(path, text)
  return path
}

const own = (create: string): string => `export const connector = { name: 'own', create: ${create} }`

test.each([
  { name: 'connector', returns: 'connector' },
  { name: 'promise', returns: 'Promise.resolve(connector)' },
])('a module that creates a $name is loaded, and receives the options and parts of its pool', async (row) => {
  const received = '[directory, maxTurnMs].join()'
  const text = own(`({ directory }, { maxTurnMs }) => {
    const connector = { prepare: () => {}, isolation: () => ({ received: ${received} }) }
    return ${row.returns}
  }`)
  const path = await moduleOf(row.name, text)
  expect((await loadConnector(path)).name).toBe('own')
  expect((await created(path)).isolation?.(newSession().tenant)).toEqual({ received: '/kv,7' })
})

test.each([
  { name: 'exports nothing', text: '', problem: /does not export an object connector/ },
  { name: 'exports a function', text: 'export const connector = () => {}', problem: /does not export an object/ },
  {
    name: 'exports no name',
    text: 'export const connector = { create: () => {} }',
    problem: /does not export an object/,
  },
  { name: 'creates nothing', text: own('() => {}'), problem: /does not return an object with a method prepare/ },
  {
    name: 'creates another object',
    text: own('() => ({})'),
    problem: /does not return an object with a method prepare/,
  },
  {
    name: 'never settles',
    text: own('() => new Promise(() => {})'),
    problem: /never-settles.mjs does not settle within/,
  },
  { name: 'throws', text: own(`() => { throw new Error('no folder') }`), problem: /no folder/ },
])('a module that $name is refused with the reason', async ({ name, text, problem }) => {
  await expect(created(await moduleOf(name.replaceAll(' ', '-'), text))).rejects.toThrow(problem)
})

test('a module that does not exist is refused with its path', async () => {
  await expect(loadConnector('/nowhere/connector.mjs')).rejects.toThrow('/nowhere/connector.mjs')
})

test('the example locks no slot on a full disk, and starts other requests from no KV', async () => {
  const full = (path: string) => writeFile(path, '').then(() => Promise.reject(new Error('the disk is full')))
  jest.unstable_mockModule('node:fs/promises', () => ({ ...promises, writeFile: full }))
  const call = async () => ({ kind: 'answered', status: 200, text: '[{"id":0}]' }) as const
  const { create } = await loadConnector('examples/slot-files-connector.mjs')
  const parts = connectorParts({ pods: () => ['p:1'], http: { call, close: async () => {} } })
  const made = await create({ ...kv, directory: folder }, parts)
  const turn = turnOf(newSession(), { address: 'p:1' })
  await expect(made.prepare(turn, { signal: anySignal() })).rejects.toThrow('full')
  const removal = { kind: 'session', session: turn.session, payload: undefined } as const
  expect(await made.remove?.(removal, anySignal())).toEqual({ kind: 'removed' })
  expect(made.constants).toEqual({ id_slot: -1, cache_prompt: false })
})
