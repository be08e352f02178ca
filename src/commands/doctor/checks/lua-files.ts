import { hash } from 'node:crypto'
import { bodyMode, type Door, filtersOf } from '../envoy-facts.ts'
import { type HttpFilter, luaSchema } from '../envoy-schema.ts'
import type { LuaFiles } from '../facts.ts'
import type { Check, Problem, Problems } from '../finding.ts'
import { doorCheck } from './door-check.ts'

type Source =
  | { readonly kind: 'text'; readonly filter: HttpFilter; readonly text: string; readonly from: string }
  | { readonly kind: 'unread'; readonly filter: HttpFilter; readonly path: string }

/** The source of each Lua filter, where it can be seen. */
const sourcesOf = (door: Door, lua: LuaFiles): readonly Source[] =>
  filtersOf(door.manager, 'Lua').flatMap((filter): readonly Source[] => {
    const {
      filename,
      inline_string: text,
      inline_bytes: bytes,
    } = luaSchema.safeParse(filter.typed_config).data?.default_source_code ?? {}
    const inline = text ?? (bytes === undefined ? undefined : Buffer.from(bytes, 'base64').toString())
    if (inline !== undefined) return [{ kind: 'text', filter, text: inline, from: `filter ${filter.name}` }]
    if (filename === undefined) return []
    const read = lua.read(filename)
    return [
      read === undefined
        ? { kind: 'unread', filter, path: filename }
        : { kind: 'text', filter, text: read, from: filename },
    ]
  })

const sha256 = (text: string): string => hash('sha256', text)
const isSame = (a: string, b: string): boolean => a.trimEnd() === b.trimEnd()

/** Compares one file of the package with the filter that should run it. */
const compare = (
  sources: readonly Source[],
  wanted: { readonly file: string; readonly content: string; readonly mark: RegExp; readonly missing: Problem },
): Problems | string => {
  const { file, content, mark, missing } = wanted
  const own = sources.find((one) => (one.kind === 'text' ? mark.test(one.text) : one.path.endsWith(file)))
  if (own?.kind === 'text') {
    if (isSame(own.text, content)) return []
    return {
      severity: 'error',
      problem: `${own.from} is not the ${file} of this version (SHA-256 ${sha256(own.text).slice(0, 16)}…, not ${sha256(content).slice(0, 16)}…).`,
      why: 'The gateway and Envoy mean different things by what they tell each other: bodies, headers or ends of turns may be wrong.',
      fix: `deploy/envoy/${file} of the gateway's version; then restart Envoy`,
    }
  }
  const unread = own ?? sources.find(({ kind }) => kind === 'unread')
  if (unread?.kind === 'unread')
    return `Envoy reads ${unread.path} by itself; it should have the SHA-256 ${sha256(content)} (sha256sum, deploy/envoy/${file})`
  return missing
}

const contextCache = doorCheck('lua', 'routes', (door, { lua }) =>
  compare(sourcesOf(door, lua), {
    file: 'context-cache.lua',
    content: lua.contextCache,
    mark: /dynamicMetadata\(\):get\("ctx"\)/,
    missing: {
      severity: 'error',
      problem: 'No Lua filter runs context-cache.lua.',
      why: 'No stored KV is used, and no session header comes back.',
      fix: 'envoy.filters.http.lua behind ext_proc: default_source_code: { filename: deploy/envoy/context-cache.lua }',
    },
  }),
)

const sessionNames = doorCheck('lua-names', 'routes', (door, { lua, settings }) => {
  const headers = settings.sessions.implicit.names.filter(
    (name) => !name.startsWith('body.') && name !== 'x-session-id',
  )
  if (headers.length === 0) return 'sessions.implicit.names names no header'
  // Envoy Gateway lets the gateway read whole bodies instead.
  if (door.extProcs.some(({ config }) => bodyMode(config) === 'BUFFERED')) return []
  return compare(sourcesOf(door, lua), {
    file: 'session-names.lua',
    content: lua.sessionNames,
    mark: /x-context-marks/,
    missing: {
      severity: 'warning',
      problem: 'No Lua filter runs session-names.lua.',
      why: 'Conversations that clients name have no session.',
      fix: 'session_names of envoy.yaml in front of ext_proc, or sessions.implicit.names: off',
    },
  })
})

export const luaChecks: readonly Check[] = [contextCache, sessionNames]
