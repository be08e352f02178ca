import { z } from 'zod'
import { parseFlags } from '../commandline/parse-flags.ts'
import { adminAccess, adminFlags } from './admin-address.ts'
import { askApi } from './admin-api.ts'
import type { Command } from './command.ts'
import { share, textOr, whole } from './figures.ts'
import { show } from './sessions.ts'
import { type Column, renderTable } from './table.ts'

const podSchema = z.object({
  address: z.string(),
  ready: z.boolean(),
  turnsInFlight: z.number(),
  sessions: z.number(),
  models: z.array(z.string()),
  loadsUnderWay: z.number(),
  turns: z.number(),
  hits: z.number(),
  loadMsP50: z.number().nullable(),
})

/** `GET /api/pods` */
export const podsSchema = z.object({
  pools: z.array(z.object({ name: z.string(), connector: z.string(), pods: z.array(podSchema) })),
})

/** `pods`: the pools and their pods, as a gateway sees them. */
export const podsCommand: Command = async (context) => {
  const parsed = parseFlags(context.args, adminFlags)
  if (parsed.kind === 'invalid') return context.failUsage(parsed.message)
  const access = adminAccess(parsed.values, context.env)
  if (typeof access === 'string') return context.failUsage(access)
  return show(context, await askApi(access, '/api/pods', podsSchema), parsed.values.json, podsText)
}

type PodRow = z.output<typeof podSchema> & { readonly pool: string; readonly connector: string }

const columns: readonly Column<PodRow>[] = [
  { title: 'POOL', of: ({ pool }) => pool },
  { title: 'POD', of: ({ address }) => address },
  { title: 'READY', of: ({ ready }) => (ready ? 'yes' : 'no') },
  { title: 'RUNNING', of: ({ turnsInFlight }) => whole(turnsInFlight), align: 'right' },
  { title: 'SESSIONS', of: ({ sessions }) => whole(sessions), align: 'right' },
  { title: 'LOADS', of: ({ loadsUnderWay }) => whole(loadsUnderWay), align: 'right' },
  { title: 'TURNS', of: ({ turns }) => whole(turns), align: 'right' },
  { title: 'HITS', of: ({ hits, turns }) => share(hits, turns), align: 'right' },
  { title: 'LOAD P50 ms', of: ({ loadMsP50 }) => whole(loadMsP50), align: 'right' },
  { title: 'CONNECTOR', of: ({ connector }) => connector },
  { title: 'MODELS', of: ({ models }) => textOr(models.join(', ')) },
]

/** A row for each pod. */
export const podsText = ({ pools }: z.output<typeof podsSchema>): string => {
  const rows = pools.flatMap(({ name: pool, connector, pods }) => pods.map((pod) => ({ pool, connector, ...pod })))
  return rows.length === 0 ? 'No pods.' : renderTable(columns, rows)
}
