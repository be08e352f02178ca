import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createCacheSalts } from '../../../src/kvcache/cache-salts.ts'
import { loadConnector } from '../../../src/kvcache/load-connector.ts'

const parts = {
  pods: () => ['10.0.0.1:8000'],
  salts: createCacheSalts('secret'),
  log: { debug: () => {}, info: () => {}, warn: () => {} },
}

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

test.each([
  { name: 'connector', returns: 'connector' },
  { name: 'promise', returns: 'Promise.resolve(connector)' },
])('a module that returns a $name is loaded, and receives the parts', async ({ name, returns }) => {
  const text = `export const createKvConnector = ({ pods }) => {
    const connector = { name: pods().join(), prepare: async () => {} }
    return ${returns}
  }`
  expect((await loadConnector(await moduleOf(name, text), parts)).name).toBe('10.0.0.1:8000')
})

test.each([
  { name: 'exports nothing', text: '', problem: /does not export a function createKvConnector/ },
  { name: 'exports no function', text: 'export const createKvConnector = {}', problem: /does not export a function/ },
  {
    name: 'returns nothing',
    text: 'export const createKvConnector = () => {}',
    problem: /does not return an object with a name and a method prepare/,
  },
  {
    name: 'returns an object without prepare',
    text: `export const createKvConnector = () => ({ name: 'own' })`,
    problem: /does not return an object with a name and a method prepare/,
  },
  {
    name: 'throws',
    text: `export const createKvConnector = () => { throw new Error('no folder') }`,
    problem: /no folder/,
  },
])('a module that $name is refused with the reason', async ({ name, text, problem }) => {
  const path = await moduleOf(name.replaceAll(' ', '-'), text)
  await expect(loadConnector(path, parts)).rejects.toThrow(problem)
})

test('a module that does not exist is refused with its path', async () => {
  await expect(loadConnector('/nowhere/connector.mjs', parts)).rejects.toThrow('/nowhere/connector.mjs')
})
