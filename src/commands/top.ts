import { setTimeout as sleep } from 'node:timers/promises'
import { parseFlags } from '../commandline/parse-flags.ts'
import { type AdminAccess, adminAccess, adminFlags } from './admin-address.ts'
import { askApi } from './admin-api.ts'
import { followEvents } from './admin-events.ts'
import type { Command, CommandContext, ExitCode } from './command.ts'
import { type Moment, type Overview, overviewSchema, renderFrame } from './frame.ts'
import { podsSchema } from './pods.ts'

const flags = { ...adminFlags, once: { type: 'boolean', default: false } } as const
const retryMs = 1_000

// ANSI: the screen of its own without a cursor, and back.
const enter = '\x1b[?1049h\x1b[?25l'
const leave = '\x1b[?25h\x1b[?1049l'
const home = '\x1b[H'
const clearLine = '\x1b[K'
const clearBelow = '\x1b[J'

/** `top`: what a gateway does now, drawn anew every second. */
export const topCommand: Command = async (context) => {
  const parsed = parseFlags(context.args, flags)
  if (parsed.kind === 'invalid') return context.failUsage(parsed.message)
  const access = adminAccess(parsed.values, context.env)
  if (typeof access === 'string') return context.failUsage(access)
  const { json, once } = parsed.values
  if (once || (!json && !context.output.isTerminal)) return printOnce(context, access, json)
  return follow(context, access, json ? jsonLines(context) : screen(context))
}

const printOnce = async ({ print, fail }: CommandContext, access: AdminAccess, json: boolean): Promise<ExitCode> => {
  const overview = await askApi(access, '/api/overview', overviewSchema)
  if (overview.kind === 'failed') return fail(overview.message)
  const pods = await askApi(access, '/api/pods', podsSchema)
  if (pods.kind === 'failed') return fail(pods.message)
  // Both unchanged, on one line.
  const line = (text: string): string => JSON.stringify(JSON.parse(text))
  return print(
    json
      ? `{"overview":${line(overview.text)},"pods":${line(pods.text)}}`
      : renderFrame({ overview: overview.value, pods: pods.value }).join('\n'),
  )
}

/** Where the moments go. */
interface Sink {
  start(): void
  /** `raw` has the JSON of the API, unchanged. */
  show(moment: Moment, raw: { readonly overview: string; readonly pods: string }): void
  /** The connection is lost; it is tried again. */
  lost(why: string): void
  end(): void
}

const follow = async (context: CommandContext, access: AdminAccess, sink: Sink): Promise<ExitCode> => {
  const stopping = new AbortController()
  const { signal } = stopping
  void context.untilStopped().then(() => stopping.abort())
  let hasBegun = false
  let raw = { overview: '', pods: '' }
  let overview: Overview | undefined
  const onEvent = (name: string, data: string): void => {
    if (name === 'overview') {
      overview = overviewSchema.safeParse(JSON.parse(data)).data
      raw = { ...raw, overview: data }
    }
    if (name !== 'pods' || overview === undefined) return
    const pods = podsSchema.safeParse(JSON.parse(data)).data
    if (pods === undefined) return
    raw = { ...raw, pods: data }
    if (!hasBegun) sink.start()
    hasBegun = true
    sink.show({ overview, pods }, raw)
  }
  try {
    for (;;) {
      const why = await followEvents(access, { onEvent, signal })
      if (signal.aborted) return 0
      if (!hasBegun) return context.fail(why)
      sink.lost(why)
      await sleep(retryMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return 0
    }
  } finally {
    if (hasBegun) sink.end()
  }
}

const jsonLines = ({ print, fail }: CommandContext): Sink => ({
  start: () => undefined,
  show: (_moment, { overview, pods }) => void print(`{"overview":${overview},"pods":${pods}}`),
  lost: (why) => void fail(why),
  end: () => undefined,
})

const screen = ({ output }: CommandContext): Sink => {
  let lines: readonly string[] = []
  let note = ''
  const draw = (): void => {
    const { columns, rows } = output.size()
    const all = [...(note === '' ? [] : [note]), ...lines]
    const shown = all.slice(0, rows).map((line) => line.slice(0, columns) + clearLine)
    output.write(home + shown.join('\r\n') + clearBelow)
  }
  output.onResize(draw)
  return {
    start: () => output.write(enter),
    show: (moment) => {
      lines = renderFrame(moment)
      note = ''
      draw()
    },
    lost: (why) => {
      note = `${why.split('\n')[0] ?? ''} Trying again.`
      draw()
    },
    end: () => output.write(leave),
  }
}
