import { readFile } from 'node:fs/promises'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { errorCodes, errorTypeOf } from '../../../src/openai/error-codes.ts'

const read = (path: string): Promise<string> => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8')

/** The rows of the table under a heading, each as its cells. */
const tableUnder = async (heading: string): Promise<readonly (readonly string[])[]> => {
  const section = (await read('docs/errors.md')).split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| '))
  return rows.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const mapperSchema = z.object({
  filter: z.object({ extension_filter: z.object({ typed_config: z.object({ expression: z.string() }) }) }),
  headers_to_add: z.array(z.object({ header: z.object({ key: z.string(), value: z.string() }) })).optional(),
  body_format_override: z.object({
    content_type: z.literal('application/json'),
    json_format: z.strictObject({
      type: z.literal('error').optional(),
      error: z.strictObject({ message: z.string(), type: z.string(), param: z.null(), code: z.string() }),
    }),
  }),
})

/** Every value under `key`, wherever it stands. */
const valuesOf = (node: unknown, key: string): readonly unknown[] =>
  typeof node === 'object' && node !== null
    ? Object.entries(node).flatMap(([name, value]) => [...(name === key ? [value] : []), ...valuesOf(value, key)])
    : []

/** What docs/errors.md says of a condition that is no single status. */
const statusIn: Readonly<Record<string, string>> = {
  '(response.code < 500 || response.code == 501)': '400 and above, 501',
  'response.code >= 500': '500 and above',
}

/** The replies of envoy.yaml in OpenAI's form, or in Anthropic's, below `/v1/messages`. */
const localReplies = async (form: 'openai' | 'anthropic' = 'openai') => {
  const [config] = valuesOf(parse(await read('envoy.yaml'), { merge: true }), 'local_reply_config')
  return z
    .object({ mappers: z.array(mapperSchema) })
    .parse(config)
    .mappers.filter((mapper) => {
      const isAnthropic = mapper.body_format_override.json_format.type === 'error'
      const { expression } = mapper.filter.extension_filter.typed_config
      expect(expression.endsWith(" && request.url_path.startsWith('/v1/messages')")).toBe(isAnthropic)
      return isAnthropic === (form === 'anthropic')
    })
    .map((mapper) => {
      const [condition = ''] = mapper.filter.extension_filter.typed_config.expression.split(' && ')
      return {
        status: statusIn[condition] ?? condition.replace('response.code == ', ''),
        isRetried: !mapper.headers_to_add?.some(
          ({ header }) => header.key === 'x-should-retry' && header.value === 'false',
        ),
        ...mapper.body_format_override.json_format.error,
      }
    })
}

describe('docs/errors.md', () => {
  test('has every error of the gateway once, as it is, and no other', async () => {
    const documented = (await tableUnder('Errors of the gateway')).map(([code, status, type]) => [code, status, type])

    expect(documented).toEqual(
      Object.entries(errorCodes).map(([code, { status }]) => [
        `\`${code}\``,
        `${status}`,
        `\`${errorTypeOf(status)}\``,
      ]),
    )
  })

  test('has every reply that envoy.yaml gives, in its order, and no other', async () => {
    const documented = (await tableUnder('Replies of Envoy')).map(([status, code, type]) => ({ status, code, type }))

    expect(documented).toEqual(
      (await localReplies()).map(({ status, code, type }) => ({ status, code: `\`${code}\``, type: `\`${type}\`` })),
    )
  })

  test.each(['Errors of the gateway', 'Replies of Envoy'])(
    'says when and what to do in every row: %s',
    async (heading) => {
      const rows = await tableUnder(heading)

      expect(rows.length).toBeGreaterThan(0)
      expect(rows.filter((row) => row.length !== 5 || row.some((cell) => cell === ''))).toEqual([])
      expect(rows.filter((row) => !row.slice(3).every((cell) => cell.endsWith('.')))).toEqual([])
    },
  )
})

describe('envoy.yaml', () => {
  test('gives the same replies in Anthropic’s form, with its types, but those to requests whose path is unknown', async () => {
    const typeOf: Readonly<Record<string, string>> = {
      '403': 'permission_error',
      '404': errorTypeOf(404, 'anthropic'),
      '413': errorTypeOf(413, 'anthropic'),
    }

    expect(await localReplies('anthropic')).toEqual(
      (await localReplies())
        .filter(({ status }) => status !== '431')
        .map((reply) => ({ ...reply, type: typeOf[reply.status] ?? reply.type })),
    )
  })

  test('never tells an SDK to repeat an error of the client', async () => {
    const replies = await localReplies()

    expect(replies.map(({ isRetried }) => isRetried)).toEqual(
      replies.map(({ type }) => /^(api|rate_limit)_error$/.test(type)),
    )
  })

  test('gives a code of the gateway only with its status, type and text', async () => {
    const shared = (await localReplies()).filter(({ code }) => code in errorCodes)

    expect(shared.length).toBeGreaterThan(0)
    expect(shared.map(({ code, status, type, message }) => [code, { status: Number(status), type, message }])).toEqual(
      shared.map(({ code }) => {
        const { status, message } = errorCodes[code as keyof typeof errorCodes]
        const type = errorTypeOf(status)
        return [code, { status, type, message }]
      }),
    )
  })

  test('refuses in its Lua filter with codes, statuses and texts of the gateway', async () => {
    const refusals = [
      ...(await read('deploy/envoy/context-cache.lua')).matchAll(
        /refuse\(handle, "(\d+)", "(\w+)", (?:"null"|'"\w+"'),\s+(["'])(.+?)\3\)/g,
      ),
    ].map(([, status, code, , message]) => [code, Number(status), message?.replaceAll('\\\\"', '"')])

    expect(refusals.map(([code]) => code)).toEqual([
      'unsupported_media_type',
      'request_too_large',
      'invalid_json',
      'model_mismatch',
    ])
    expect(refusals).toEqual(
      refusals.map(([code]) => {
        const { status, message } = errorCodes[code as keyof typeof errorCodes]
        return [code, status, message]
      }),
    )
  })
})
