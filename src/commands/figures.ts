const none = '-'

/** `1,234`; `-` for none. */
export const whole = (number: number | null | undefined): string =>
  number == null ? none : Math.round(number).toLocaleString('en-US')

const bytesUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `1.5 GiB` */
export const size = (bytes: number | null | undefined): string => {
  if (bytes == null) return none
  const step = Math.min(bytesUnits.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const value = bytes / 1_024 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${bytesUnits[step]}`
}

/** `45s`, `3m 20s`, `2h 5m`, `3d 4h`: the two largest units. */
export const duration = (seconds: number): string => {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [Math.floor(seconds) % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  if (first === -1) return '0s'
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ')
}

/** Part of a whole, `87%`. */
export const share = (part: number, all: number): string => (all === 0 ? none : `${Math.round((100 * part) / all)}%`)

/** Text, or `-`. */
export const textOr = (text: string | null | undefined): string => (text == null || text === '' ? none : text)

/** The tokens of turns. */
export const tokensText = (tokens: Record<'prompt' | 'cached' | 'output', number>): string =>
  `prompt ${whole(tokens.prompt)}, of them cached ${whole(tokens.cached)}; output ${whole(tokens.output)}`
