import { z } from 'zod'
import { adminAccess, adminFlags } from './admin-address.ts'
import { askApi } from './admin-api.ts'
import { type Command, parseAction } from './command.ts'
import { size, tokensText, whole } from './figures.ts'
import { show } from './sessions.ts'
import { renderFields } from './table.ts'

const actions = ['get', 'erase'] as const

const useSchema = z.object({
  tenant: z.string(),
  sessions: z.number(),
  namedSessions: z.number(),
  storedBytes: z.number(),
  turns: z.number(),
  tokens: z.object({ prompt: z.number(), output: z.number(), cached: z.number() }),
  complete: z.boolean(),
})
const erasedSchema = z.object({ sessions: z.number(), cachedAnswers: z.number(), complete: z.boolean() })

/** `tenants get|erase`: what a tenant uses, and the end of all of it. */
export const tenantsCommand: Command = async (context) => {
  const parsed = parseAction(context.args, adminFlags, actions)
  if (typeof parsed === 'string') return context.failUsage(parsed)
  const { action, argument: tenant, values } = parsed
  if (tenant === undefined || !/^[A-Za-z0-9_-]{22}$/.test(tenant))
    return context.failUsage('Give the digest of a tenant: the 22 characters that sessions ls shows.')
  const access = adminAccess(values, context.env)
  if (typeof access === 'string') return context.failUsage(access)
  const path = `/api/tenants/${tenant}`
  if (action === 'get') return show(context, await askApi(access, path, useSchema), values.json, useText)
  const erased = await askApi(access, path, erasedSchema, 'DELETE')
  const code = show(context, erased, values.json, erasedText)
  return erased.kind === 'answered' && !erased.value.complete ? 1 : code
}

const useText = (use: z.output<typeof useSchema>): string =>
  renderFields([
    ['tenant', use.tenant],
    ['sessions', `${whole(use.sessions)}${use.complete ? '' : ' and more'}, of them named ${whole(use.namedSessions)}`],
    ['stored', size(use.storedBytes)],
    ['turns', whole(use.turns)],
    ['tokens', tokensText(use.tokens)],
  ])

const erasedText = ({ sessions, cachedAnswers, complete }: z.output<typeof erasedSchema>): string =>
  complete
    ? `Erased: ${whole(sessions)} sessions, ${whole(cachedAnswers)} cached answers of this gateway.`
    : `Erased ${whole(sessions)} sessions so far; there are more: call it again.`
