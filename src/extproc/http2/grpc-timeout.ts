const unitMs: Readonly<Record<string, number>> = Object.freeze({
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
})

/** Node's timers take no longer ones. */
const maxTimeoutMs = 2 ** 31 - 1

/** `grpc-timeout` in milliseconds, at most some 24 days; none: undefined; not readable: malformed. */
export const parseGrpcTimeout = (value: string | undefined): number | 'malformed' | undefined => {
  if (value === undefined) return undefined
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? []
  const factor = unitMs[unit ?? '']
  return factor === undefined ? 'malformed' : Math.min(Number(digits) * factor, maxTimeoutMs)
}
