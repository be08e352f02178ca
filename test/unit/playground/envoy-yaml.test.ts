import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'

const route = z.object({
  match: z.object({ headers: z.array(z.object({ name: z.string() })).default([]) }),
  request_headers_to_remove: z.array(z.string()).default([]),
})
const manager = z.object({
  typed_config: z.object({
    route_config: z.object({ virtual_hosts: z.tuple([z.object({ routes: z.array(route).min(1) })]) }),
  }),
})
const listener = z.object({ filter_chains: z.tuple([z.object({ filters: z.tuple([manager]) })]) })
const configuration = z.object({
  inline_headers: z.array(z.object({ inline_header_name: z.string(), inline_header_type: z.string() })),
  static_resources: z.object({ listeners: z.tuple([listener]) }),
})

const { inline_headers: places, static_resources: resources } = configuration.parse(
  parse(readFileSync(new URL('../../../../envoy.yaml', import.meta.url), 'utf8')),
)
const { routes } = resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0]

/** Envoy's own headers have places in any case. */
const isOfEnvoy = (header: string): boolean => header.startsWith(':') || header === 'content-length'

const ofRequests = places.filter((place) => place.inline_header_type === 'REQUEST_HEADER')
const isPlaced = (header: string): boolean => ofRequests.some((place) => place.inline_header_name === header)

test('no route asks for a header that has no place of its own, nor takes one off: Envoy would put all headers of every request into a table', () => {
  const asked = routes.flatMap(({ match }) => match.headers.map(({ name }) => name))
  const removed = routes.flatMap((each) => each.request_headers_to_remove)
  expect(asked).toContain('x-session-id')
  expect(removed).toContain('x-context-request-key')
  expect([...asked, ...removed].filter((header) => !isOfEnvoy(header) && !isPlaced(header))).toEqual([])
})
