import { eventually } from '../../support/eventually.ts'
import { call } from './client.ts'
import type { Stack } from './stack.ts'

/** Values of a metric of a gateway by its labels as text; `name` without its prefix. */
export const readMetric = async (
  stack: Stack,
  name: string,
  gateway = 0,
): Promise<Readonly<Record<string, number>>> => {
  const { text } = await call(`${stack.gateway(gateway).adminUrl}/metrics`)
  const rows = text.matchAll(new RegExp(`^context_cache_${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))
  return Object.fromEntries([...rows].map(([, labels = '', value]) => [labels, Number(value)]))
}

/** The sum of a metric over all series that have these labels; `name` without its prefix. */
export const metric = async (
  stack: Stack,
  name: string,
  labels: Readonly<Record<string, string>> = {},
  gateway = 0,
): Promise<number> => {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return Object.entries(await readMetric(stack, name, gateway))
    .filter(([series]) => wanted.every((label) => series.includes(label)))
    .reduce((sum, [, value]) => sum + value, 0)
}

/** Waits until the end of every turn that the gateway forwarded is recorded. */
export const untilTurnsEnd = (stack: Stack): Promise<true> =>
  eventually(
    async () =>
      (await metric(stack, 'requests_total', { outcome: 'forwarded' })) === (await metric(stack, 'turns_total')),
  )

/** A counter of Envoy, by its name or the end of it. @throws Error when there is none */
export const envoyStat = async (stack: Stack, name: string): Promise<number> => {
  const { text } = await call(`http://${stack.envoy.adminAddress}/stats?filter=${name.replaceAll('.', '\\.')}$`)
  const value = /: (\d+)/.exec(text)?.[1]
  if (value === undefined) throw new Error(`Envoy has no counter ${name}`)
  return Number(value)
}

/** Whether the gateway sends turns to the pod, by what was logged of it last. */
export const isReady = (stack: Stack, address: string): boolean => {
  const lines = stack.output().split('\n')
  const last = (...texts: readonly string[]) => lines.findLastIndex((line) => texts.some((text) => line.includes(text)))
  const ready = last(`"kind":"ready","address":"${address}"`, `${address} is available again`)
  return ready > last(`The engine ${address} is unavailable`)
}
