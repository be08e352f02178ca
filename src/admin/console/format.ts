const dash = '–'
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const oneDecimal = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const threeDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** `12,345`; a dash for what is unknown. */
export const count = (value: number | null): string => (value === null ? dash : whole.format(value))

/** At most three digits: `0.125`, `12.5`, `1,250`. */
export const rounded = (value: number): string => (value >= 100 ? whole.format(value) : threeDigits.format(value))

/** `75 %` of a whole; a dash where the whole is nothing. */
export const share = (part: number, all: number): string =>
  all === 0 ? dash : `${oneDecimal.format((100 * part) / all)} %`

/** `12 ms`, `1.5 s`, `2 min 5 s`, `3 h 20 min`, `2 d 3 h`. */
export const duration = (seconds: number): string => {
  if (seconds > 0 && seconds < 1) return `${rounded(Math.round(seconds * 1000))} ms`
  if (seconds < 100) return `${threeDigits.format(seconds)} s`
  const [large, small] =
    seconds < 3600 ? (['min', 's'] as const) : seconds < 86_400 ? (['h', 'min'] as const) : (['d', 'h'] as const)
  const total = Math.floor(seconds / unitSeconds[small])
  const each = unitSeconds[large] / unitSeconds[small]
  const rest = total % each
  return `${whole.format(Math.floor(total / each))} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`
}

const unitSeconds = { s: 1, min: 60, h: 3600, d: 86_400 } as const

/** As {@link duration}; a dash for what is unknown. */
export const milliseconds = (value: number | null | undefined): string =>
  value === null || value === undefined ? dash : duration(value / 1000)

/** `512 B`, `1.5 MiB`; a dash for what is unknown. */
export const bytes = (value: number | null): string => {
  if (value === null) return dash
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), byteUnits.length - 1)
  return `${rounded(value / 1024 ** power)} ${byteUnits[power]}`
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** `12 s ago`, `47 min ago`. */
export const ago = (iso: string, now: Date): string => `${coarse(now.getTime() - Date.parse(iso))} ago`

/** `in 59 min`, or `expired`. */
export const until = (iso: string, now: Date): string => {
  const left = Date.parse(iso) - now.getTime()
  return left <= 0 ? 'expired' : `in ${coarse(left)}`
}

/** Without seconds, where there are minutes. */
const coarse = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  return duration(seconds < 100 ? seconds : Math.floor(seconds / 60) * 60)
}

/** `14:03:27`, in the reader's time zone. */
export const clock = (iso: string): string => new Date(iso).toLocaleTimeString('en-GB')

/** `28 Nov 2026, 14:03:27`, in the reader's time zone. */
export const dateAndTime = (iso: string): string =>
  new Date(iso).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
