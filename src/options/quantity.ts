/** What the number of an option counts. */
export type Unit = 'ms' | 's' | 'bytes'

const milliseconds: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const bytes: Readonly<Record<string, number>> = {
  kB: 1_000,
  MB: 1_000 ** 2,
  GB: 1_000 ** 3,
  TB: 1_000 ** 4,
  KiB: 1_024,
  MiB: 1_024 ** 2,
  GiB: 1_024 ** 3,
  TiB: 1_024 ** 4,
}

/** The units that an option takes beside plain numbers. */
export const unitsOf = (unit: Unit): readonly string[] => Object.keys(unit === 'bytes' ? bytes : milliseconds)

/** `90s`, `1h`, `256MiB` as a number of `unit`; undefined: the text is none. A second of 250 ms is a fraction. */
export const parseQuantity = (text: string, unit: Unit): number | undefined => {
  const [, digits, suffix = ''] = /^(\d{1,15})([A-Za-z]+)$/.exec(text) ?? []
  const units = unit === 'bytes' ? bytes : milliseconds
  const factor = Object.hasOwn(units, suffix) ? units[suffix] : undefined
  if (digits === undefined || factor === undefined) return undefined
  return (Number(digits) * factor) / (unit === 's' ? 1_000 : 1)
}
