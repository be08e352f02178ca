import { z } from 'zod'

const readiness = z.object({
  ready: z.boolean(),
  reasons: z.array(z.string()).default([]),
  pools: z.array(
    z.object({
      name: z.string(),
      connector: z.string(),
      pods: z.array(z.object({ address: z.string(), ready: z.boolean() })),
    }),
  ),
  warnings: z.array(z.object({ kind: z.string(), subject: z.string(), text: z.string() })),
})

/** What a gateway's `/readyz` says. */
export interface GatewayFacts extends z.output<typeof readiness> {
  /** Of all pools. */
  readonly pods: readonly { readonly pool: string; readonly address: string; readonly ready: boolean }[]
}

/** Undefined: it is no gateway that answers. */
export const readGatewayFacts = (page: unknown): GatewayFacts | undefined => {
  const { data } = readiness.safeParse(page)
  return data && { ...data, pods: data.pools.flatMap(({ name, pods }) => pods.map((pod) => ({ pool: name, ...pod }))) }
}
