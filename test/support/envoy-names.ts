import { parseDocument } from 'yaml'
import { z } from 'zod'

/** Where a configuration of Envoy deals with clients' names for conversations. */
export interface NamesInEnvoy {
  /** Routes of turns on which `session-names.lua` runs: the header of each, and the members of the body that it looks for. */
  readonly routes: readonly { readonly header?: string | undefined; readonly members?: string | undefined }[]
  /** Headers that Envoy sends to the gateway. */
  readonly allowed: readonly string[]
  /** Headers that Envoy removes from what clients send. */
  readonly removedEarly: readonly string[]
  /** Headers that Envoy removes from what pods receive. */
  readonly removedLate: readonly string[]
}

const route = z.object({
  match: z.object({ headers: z.array(z.object({ name: z.string() })).optional() }),
  typed_per_filter_config: z
    .object({ session_names: z.object({ filter_context: z.object({ members: z.string().optional() }) }).optional() })
    .optional(),
})
const connectionManager = z.object({
  early_header_mutation_extensions: z
    .array(z.object({ typed_config: z.object({ mutations: z.array(z.object({ remove: z.string().optional() })) }) }))
    .default([]),
  route_config: z.object({
    virtual_hosts: z.tuple([
      z.object({ request_headers_to_remove: z.array(z.string()).default([]), routes: z.array(route) }),
    ]),
  }),
  http_filters: z.array(
    z.object({
      typed_config: z.object({
        forward_rules: z
          .object({ allowed_headers: z.object({ patterns: z.array(z.object({ exact: z.string() })) }) })
          .optional(),
      }),
    }),
  ),
})
const filters = z.object({ filters: z.array(z.object({ typed_config: connectionManager })) })
const listener = z.looseObject({ filter_chains: z.array(filters) })
const schema = z.object({ static_resources: z.object({ listeners: z.tuple([listener], z.unknown()) }) })

/** @throws ZodError where the text is not such a configuration */
export const namesInEnvoy = (text: string): NamesInEnvoy => {
  const [clients] = schema.parse(parseDocument(text, { merge: true }).toJS()).static_resources.listeners
  const managers = clients.filter_chains.flatMap((chain) => chain.filters.map(({ typed_config }) => typed_config))
  const hosts = managers.flatMap(({ route_config }) => route_config.virtual_hosts)
  return {
    routes: hosts.flatMap(({ routes }) =>
      routes.flatMap(({ match, typed_per_filter_config: { session_names: filter } = {} }) =>
        filter === undefined ? [] : [{ header: match.headers?.[0]?.name, members: filter.filter_context.members }],
      ),
    ),
    allowed: managers
      .flatMap((manager) => manager.http_filters)
      .flatMap(({ typed_config: { forward_rules: rules } }) => rules?.allowed_headers.patterns ?? [])
      .map(({ exact }) => exact),
    removedEarly: managers
      .flatMap((manager) => manager.early_header_mutation_extensions)
      .flatMap(({ typed_config }) => typed_config.mutations.flatMap(({ remove }) => remove ?? [])),
    removedLate: hosts.flatMap((host) => host.request_headers_to_remove),
  }
}
