import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { levels } from 'pino'
import { z } from 'zod'
import { configJsonSchema } from '../../../src/config/json-schema.ts'
import { optionGroups, renderOptionGroup } from '../../../src/config/option-help.ts'
import { listConfigOptions } from '../../../src/config/options.ts'
import { configSchema } from '../../../src/config/schema.ts'
import { policyNames } from '../../../src/routing/policies.ts'

const options = listConfigOptions().map((option) => ({ ...option, name: option.path.join('.') }))

const page = (): string => readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')

describe('listConfigOptions', () => {
  test('contains every group of the schema, and no variable twice', () => {
    expect(new Set(options.map(({ path }) => path[0]))).toEqual(new Set(Object.keys(configSchema.shape)))
    const variables = options.flatMap(({ envName, plainEnvName }) => [envName, plainEnvName ?? []].flat())
    expect(new Set(variables).size).toBe(variables.length)
  })

  test.each(options)('$name has a description that fits a table cell', ({ description, range, name }) => {
    expect(description).toMatch(/^[^|\n]{10,}\.$/)
    expect(range).not.toContain('undefined')
    expect(name).not.toBe('')
  })

  test('policies and log levels of the schema are those of the code', () => {
    const { routing, log } = configSchema.shape
    expect(routing.unwrap().shape.policy.unwrap().options).toEqual([...policyNames])
    expect(log.unwrap().shape.level.unwrap().options).toEqual([...Object.values(levels.labels), 'silent'])
  })
})

describe('docs/configuration.md', () => {
  test('contains the table of the code', () => {
    const [, table = ''] = /<!-- options -->\n([\s\S]*)\n<!-- \/options -->/.exec(page()) ?? []
    const rows = options.map(({ name, envName, plainEnvName, range, defaultText = '–', description }) => {
      const variables = [envName, plainEnvName ?? []].flat().map((variable) => `\`${variable}\``)
      return `| \`${name}\` | ${variables.join(' or ')} | ${range} | ${defaultText} | ${description} |`
    })
    expect(table.split('\n').slice(2)).toEqual(rows)
  })

  test('names every policy', () => {
    const [, table = ''] = page().split('\n## Policies\n')
    const named = [...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name)
    expect(named).toEqual([...policyNames])
  })
})

describe('deploy/config.schema.json', () => {
  test('is what `config schema` prints', () => {
    const file = readFileSync(new URL('../../../deploy/config.schema.json', import.meta.url), 'utf8')
    expect(file).toBe(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
  })

  test('takes plain numbers and texts with units, and knows limits, defaults and meanings', () => {
    const { properties } = z.looseObject({ properties: z.looseObject({}) }).parse(configJsonSchema())
    expect(properties).toMatchObject({
      reaper: {
        additionalProperties: false,
        properties: {
          intervalMs: {
            default: 1000,
            description: 'Time between two sweeps for expired sessions and KV to remove.',
            anyOf: [
              { type: 'integer', minimum: 1, maximum: 86_400_000 },
              { type: 'string', pattern: '^\\d{1,15}(ms|s|m|h|d)$' },
            ],
          },
        },
      },
    })
    expect(JSON.stringify(properties)).not.toMatch(/"(plainEnv|secret|unit|defaultText)":"?(whole|[A-Z_]+|ms)"/)
  })
})

describe('renderOptionGroup', () => {
  test('shows every option in the page of one group', () => {
    const lines = optionGroups.flatMap((group) => renderOptionGroup(group).split('\n'))
    expect(lines.filter((_, index) => index % 2 === 0).map((line) => line.trim().split(' ')[0])).toEqual(
      options.map(({ name }) => name),
    )
    expect(lines.slice(0, 2)).toEqual([
      '  listen.extproc.host (CTX_LISTEN_EXTPROC_HOST): string; default: "127.0.0.1"',
      '      Address of the gRPC port for Envoy. Encrypted only with listen.extproc.tls.',
    ])
  })
})
