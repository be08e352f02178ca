import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { kv } from '../../../src/config/kv-schema.ts'
import { listConfigOptions } from '../../../src/config/options.ts'
import { connectors, selectedConnector } from '../../../src/kvcache/registry.ts'
import { problemsOf } from '../config/load.ts'

const docs = new URL('../../../docs/', import.meta.url)
const page = (name: string): string => readFileSync(new URL(name, docs), 'utf8')
const options = listConfigOptions()

describe.each(connectors.map((connector) => ({ name: connector.name, connector })))('$name', ({ name, connector }) => {
  test('can be selected, and is documented', async () => {
    await expect(selectedConnector({ connector: name })).resolves.toBe(connector)
    expect(options.find(({ path }) => path.join('.') === 'kv.connector')).toMatchObject({
      range: expect.stringContaining(`\`${name}\``),
      description: expect.stringContaining(connector.summary),
    })
    expect(page('connectors.md')).toContain(`| \`${name}\` |`)
  })

  test('is checked when a pool selects it', () => {
    const messages = (connector.check?.(kv.parse(undefined)) ?? []).map(({ message }) => message)
    const problems = problemsOf({ PODS: '10.0.0.1:8000', CONNECTOR: name })
    expect(problems.match(/needs/g) ?? []).toHaveLength(messages.length)
    for (const message of messages) expect(problems).toContain(message)
  })

  test('has its options in the configuration and in its table', () => {
    for (const option of Object.keys(connector.options)) {
      const own = options.filter(({ path }) => path[0] === 'kv' && path[1] === option)
      expect(own).not.toEqual([])
      for (const { path } of own) expect(page('configuration.md')).toContain(`| \`${path.join('.')}\` |`)
    }
  })
})
