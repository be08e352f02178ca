import { z } from 'zod'
import { type AdminAccess, adminAccess, adminFlags } from './admin-address.ts'
import { type ApiReply, askApi } from './admin-api.ts'
import { type Command, type CommandContext, type ExitCode, parseAction } from './command.ts'
import { duration, size, textOr, tokensText, whole } from './figures.ts'
import { type Column, renderFields, renderTable } from './table.ts'

const flags = {
  ...adminFlags,
  model: { type: 'string' },
  tenant: { type: 'string' },
  limit: { type: 'string' },
  after: { type: 'string' },
} as const

const actions = ['ls', 'get', 'rm'] as const

const sessionSchema = z.object({
  digest: z.string(),
  tenant: z.string(),
  model: z.string(),
  namedBy: z.string().nullable(),
  createdAt: z.string(),
  expiresAt: z.string(),
  ttlSeconds: z.number(),
  turns: z.number(),
  tokens: z.object({ prompt: z.number(), output: z.number(), cached: z.number() }),
  pod: z.string().nullable(),
  kv: z.object({ tokens: z.number(), bytes: z.number() }).nullable(),
  kvStatus: z.string().nullable(),
})
const pageSchema = z.object({ data: z.array(sessionSchema), next: z.string().nullable() })
const eventSchema = z.object({
  at: z.string(),
  kind: z.string(),
  pod: z.string().optional(),
  outcome: z.string().optional(),
  cacheStatus: z.string().optional(),
  ttftMs: z.number().optional(),
  promptTokens: z.number().optional(),
  cachedTokens: z.number().optional(),
  outputTokens: z.number().optional(),
  waitedMs: z.number().optional(),
  offload: z.string().optional(),
})
const wholeSessionSchema = sessionSchema.extend({ timeline: z.array(eventSchema) })
const deletedSchema = z.object({ deleted: z.literal(true) })

type Session = z.output<typeof sessionSchema>
type Event = z.output<typeof eventSchema>

/** `sessions ls|get|rm`: the sessions of a gateway and its store. */
export const sessionsCommand: Command = async (context) => {
  const parsed = parseAction(context.args, flags, actions)
  if (typeof parsed === 'string') return context.failUsage(parsed)
  const { action, argument, values } = parsed
  const access = adminAccess(values, context.env)
  if (typeof access === 'string') return context.failUsage(access)
  if (action === 'ls') {
    if (argument !== undefined) return context.failUsage(`The argument ${argument} is one too many.`)
    return listSessions(context, access, values)
  }
  const filter = (['model', 'tenant', 'limit', 'after'] as const).find((flag) => values[flag] !== undefined)
  if (filter !== undefined) return context.failUsage(`--${filter} belongs to sessions ls.`)
  const id = argument === '-' ? (await context.readInput()).trim() : argument
  // The id is not repeated: it lets its reader use the session.
  if (id === undefined || !/^ctx_[A-Za-z0-9_-]{1,64}$/.test(id))
    return context.failUsage('Give the id of a session (ctx_…), or - to read it from standard input.')
  const path = `/api/sessions/${id}`
  if (action === 'get') return show(context, await askApi(access, path, wholeSessionSchema), values.json, sessionText)
  return show(
    context,
    await askApi(access, path, deletedSchema, 'DELETE'),
    values.json,
    () => 'The session is deleted.',
  )
}

/** Prints an answer as JSON or for people, or why there is none. */
export const show = <T>(
  { print, fail }: Pick<CommandContext, 'print' | 'fail'>,
  reply: ApiReply<T>,
  json: boolean,
  render: (value: T) => string,
): ExitCode => {
  if (reply.kind === 'failed') return fail(reply.message)
  return print(json ? reply.text : render(reply.value))
}

const listSessions = async (
  context: CommandContext,
  access: AdminAccess,
  values: {
    readonly json: boolean
    readonly limit?: string | undefined
    readonly model?: string | undefined
    readonly tenant?: string | undefined
    readonly after?: string | undefined
  },
): Promise<ExitCode> => {
  const { json, limit, model, tenant } = values
  if (limit !== undefined && !/^(?:[1-9][0-9]?|100)$/.test(limit)) return context.failUsage('--limit is 1 to 100.')
  let { after } = values
  for (;;) {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries({ limit, model, tenant, after }))
      if (value !== undefined) query.set(name, value)
    const reply = await askApi(access, `/api/sessions?${query.toString()}`, pageSchema)
    // The API looks through a bounded number of sessions for those of a model.
    const goesOn = reply.kind === 'answered' && reply.value.data.length === 0 && reply.value.next !== null
    if (!goesOn) return show(context, reply, json, pageText)
    after = reply.value.next ?? undefined
  }
}

const untilText = (at: string): string => {
  const seconds = (Date.parse(at) - Date.now()) / 1_000
  return seconds > 0 ? `in ${duration(seconds)}` : 'now'
}

const columns: readonly Column<Session>[] = [
  { title: 'SESSION', of: ({ digest }) => digest },
  { title: 'MODEL', of: ({ model }) => model },
  { title: 'TENANT', of: ({ tenant }) => tenant },
  { title: 'NAMED BY', of: ({ namedBy }) => textOr(namedBy) },
  { title: 'TURNS', of: ({ turns }) => whole(turns), align: 'right' },
  { title: 'PROMPT', of: ({ tokens }) => whole(tokens.prompt), align: 'right' },
  { title: 'CACHED', of: ({ tokens }) => whole(tokens.cached), align: 'right' },
  { title: 'STORED', of: ({ kv }) => size(kv?.bytes), align: 'right' },
  { title: 'POD', of: ({ pod }) => textOr(pod) },
  { title: 'ENDS', of: ({ expiresAt }) => untilText(expiresAt) },
]

const pageText = ({ data, next }: z.output<typeof pageSchema>): string => {
  if (data.length === 0) return 'No sessions.'
  return [renderTable(columns, data), ...(next === null ? [] : ['', `There are more: --after ${next}`])].join('\n')
}

const eventColumns: readonly Column<Event>[] = [
  { title: 'AT', of: ({ at }) => at },
  { title: 'EVENT', of: ({ kind, outcome }) => (outcome === undefined ? kind : `${kind} ${outcome}`) },
  { title: 'POD', of: ({ pod }) => textOr(pod) },
  { title: 'TTFT ms', of: ({ ttftMs }) => whole(ttftMs), align: 'right' },
  { title: 'WAITED ms', of: ({ waitedMs }) => whole(waitedMs), align: 'right' },
  { title: 'PROMPT', of: ({ promptTokens }) => whole(promptTokens), align: 'right' },
  { title: 'CACHED', of: ({ cachedTokens }) => whole(cachedTokens), align: 'right' },
  { title: 'OUTPUT', of: ({ outputTokens }) => whole(outputTokens), align: 'right' },
  { title: 'STORED', of: ({ offload }) => textOr(offload) },
  { title: 'CACHE', of: ({ cacheStatus }) => textOr(cacheStatus) },
]

const sessionText = (session: z.output<typeof wholeSessionSchema>): string => {
  const { kv, tokens } = session
  const fields = renderFields([
    ['session', session.digest],
    ['tenant', session.tenant],
    ['model', session.model],
    ['named by', textOr(session.namedBy)],
    ['created', session.createdAt],
    ['ends', `${session.expiresAt} (${untilText(session.expiresAt)}; ttl ${duration(session.ttlSeconds)})`],
    ['turns', whole(session.turns)],
    ['tokens', tokensText(tokens)],
    ['pod', textOr(session.pod)],
    ['stored', kv === null ? textOr(session.kvStatus) : `${whole(kv.tokens)} tokens, ${size(kv.bytes)}`],
  ])
  return session.timeline.length === 0 ? fields : [fields, '', renderTable(eventColumns, session.timeline)].join('\n')
}
