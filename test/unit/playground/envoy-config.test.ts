import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { readEnvoyConfig } from '../../../playground/envoy-config.ts'

const socket = z.object({ socket_address: z.object({ address: z.string(), port_value: z.int() }) })
const cluster = z.object({
  name: z.string(),
  load_assignment: z.object({
    endpoints: z.tuple([z.object({ lb_endpoints: z.array(z.object({ endpoint: z.object({ address: socket }) })) })]),
  }),
})
const filter = z.looseObject({ name: z.string() })
const manager = z.object({ typed_config: z.object({ http_filters: z.array(filter) }) })
const listener = z.object({ address: socket, filter_chains: z.tuple([z.object({ filters: z.tuple([manager]) })]) })
const configuration = z.object({
  static_resources: z.object({ listeners: z.tuple([listener]), clusters: z.array(cluster) }),
})

const { listeners, clusters } = configuration.parse(
  parse(
    await readEnvoyConfig('envoy.yaml', {
      listen: '127.0.0.1:1000',
      pods: ['a:1', 'b:2'],
      gateways: ['c:3'],
    }),
  ),
).static_resources

test('every cluster of envoy.yaml gets the addresses of its kind', () => {
  const addresses = clusters.map(({ name, load_assignment: { endpoints } }) => [
    name,
    endpoints[0].lb_endpoints
      .map(({ endpoint }) => endpoint.address.socket_address)
      .map(({ address, port_value }) => `${address}:${port_value}`)
      .join(),
  ])
  expect(addresses).toEqual([
    ['pods', 'a:1,b:2'],
    ['gateway', 'c:3'],
    ['gateway_ends', 'c:3'],
  ])
  expect(listeners[0].address.socket_address).toEqual({ address: '127.0.0.1', port_value: 1000 })
})

test('the Lua file gets an absolute path', () => {
  const lua = listeners[0].filter_chains[0].filters[0].typed_config.http_filters.find(
    ({ name }) => name === 'envoy.filters.http.lua',
  )
  const source = z.looseObject({ typed_config: z.object({ default_source_code: z.object({ filename: z.string() }) }) })
  const { filename } = source.parse(lua).typed_config.default_source_code
  expect([isAbsolute(filename), existsSync(filename)]).toEqual([true, true])
})

test.each([
  { name: 'slots: spliced', connector: undefined, isSpliced: true },
  { name: 'slots, named: spliced', connector: 'llamacpp-slots', isSpliced: true },
  { name: 'any other: unchanged', connector: 'lmcache', isSpliced: false },
])('requests without a session, by the connector: $name', async ({ connector, isSpliced }) => {
  const addresses = { listen: '127.0.0.1:1000', pods: ['a:1'], gateways: ['c:3'], connector }

  expect((await readEnvoyConfig('envoy.yaml', addresses)).includes('"cache_prompt":false')).toBe(isSpliced)
})
