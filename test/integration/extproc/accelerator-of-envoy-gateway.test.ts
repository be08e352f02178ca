import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { envoyStat } from '../support/metrics.ts'
import { cacheLine, createdId, untilTurns, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const file = new URL('../../../deploy/envoy-gateway/accelerator.yaml', import.meta.url)
const policy = z.object({
  kind: z.literal('EnvoyExtensionPolicy'),
  spec: z.object({
    wasm: z.tuple([z.object({ config: z.string() })]),
    lua: z.tuple([z.object({ inline: z.string() }), z.unknown()]),
  }),
})
const [, document] = parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS())
const { wasm, lua } = policy.parse(document).spec
/** As Envoy Gateway passes it: JSON. */
const configuration = JSON.stringify(wasm[0].config)
const [cluster] = wasm[0].config.split(' ')
const mover = {
  '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
  default_source_code: { inline_string: lua[0].inline },
}

/** accelerated.yaml with what Envoy Gateway has fields for: the Lua of deploy/envoy-gateway does the rest. */
const stack = useStack({
  wiring: 'accelerator',
  envoyConfig: (text) =>
    JSON.stringify(parse(text), (key, value) => {
      if (key === 'allow_on_headers_stop_iteration') return undefined
      if (key === 'configuration') return { ...value, value: configuration }
      if (key === 'clusters') {
        return [
          ...value,
          { ...value.find((one: { name: string }) => one.name === 'gateway'), name: cluster, health_checks: [] },
        ]
      }
      if (key === 'override_host_sources') return [...value, { header: 'x-gateway-destination-endpoint' }]
      if (value?.name === 'envoy.filters.http.header_to_metadata') return { ...value, typed_config: mover }
      if (key === 'string_value') return value.replace(/%COALESCE.*\)%/, '%DYNAMIC_METADATA(ctx:turn)%')
      return value
    }),
})

test('a turn is asked about by the filter, spliced and ended by Lua, and goes to the decision’s pod', async () => {
  const id = await createdId(stack)
  await untilTurns(stack, id, 1)
  const before = await envoyStat(stack, 'ext_proc.streams_started')

  expect(cacheLine(await use(stack, id))).toMatch(/^hit; tier=gpu/)

  expect(await envoyStat(stack, 'ext_proc.streams_started')).toBe(before)
  expect(await envoyStat(stack, 'wasmcustom.turns.unasked')).toBe(0)
  await untilTurns(stack, id, 2)
})
