/** Figures of one prompt length, milliseconds. */
export interface TtftRow {
  readonly tokens: number
  readonly medianMs: { readonly cold: number; readonly samePod: number; readonly otherPodLoaded: number }
}

/** The figures of one engine. */
export interface TtftPanel {
  readonly title: string
  readonly rows: readonly TtftRow[]
}

/** Colours that people with a colour vision deficiency can tell apart, on light and on dark (Okabe and Ito). */
const series = [
  { name: 'cold', title: 'no KV (cold)', colour: '#8c8c8c' },
  { name: 'otherPodLoaded', title: 'other pod, KV loaded', colour: '#e69f00' },
  { name: 'samePod', title: 'same pod', colour: '#3a9bdc' },
] as const

const panelWidth = 440
const height = 330
const [marginLeft, plotWidth] = [52, 376]
const [plotTop, plotBottom] = [74, 284]
const barShare = 0.26
const gridLines = 4

/** Renders a bar chart of time to first token, a panel for each engine, as SVG, in the reader's light or dark mode. */
export const renderTtftChart = (panels: readonly TtftPanel[]): string => {
  const width = panelWidth * panels.length
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Time to first token in milliseconds">`,
    '<style>',
    'text { font: 12px system-ui, sans-serif; fill: #24292f } .value { font-size: 10px } .title { font-weight: 600; font-size: 14px }',
    '.grid { stroke: #d0d7de; stroke-width: 1 }',
    '@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d } }',
    '</style>',
    ...series.flatMap(({ title, colour }, index) => [
      `<rect x="${marginLeft + index * 150}" y="8" width="12" height="12" fill="${colour}"/>`,
      text(marginLeft + index * 150 + 18, 18, title),
    ]),
    ...panels.flatMap(panelLines),
    '</svg>',
  ].join('\n')}\n`
}

const panelLines = ({ title, rows }: TtftPanel, index: number): readonly string[] => {
  const left = index * panelWidth + marginLeft
  const step = axisStep(Math.max(1, ...rows.flatMap(({ medianMs }) => series.map(({ name }) => medianMs[name]))))
  const yOf = (ms: number): number => plotBottom - (ms / (step * gridLines)) * (plotBottom - plotTop)
  const groupWidth = plotWidth / rows.length
  const barWidth = groupWidth * barShare
  return [
    text(left, 50, `${title}: time to first token, ms`, ' class="title"'),
    ...Array.from({ length: gridLines + 1 }, (_, line) => line * step).flatMap((ms) => [
      `<line class="grid" x1="${left}" x2="${left + plotWidth}" y1="${round(yOf(ms))}" y2="${round(yOf(ms))}"/>`,
      text(left - 6, yOf(ms) + 4, String(ms), ' text-anchor="end"'),
    ]),
    ...rows.flatMap(({ tokens, medianMs }, group) => {
      const centre = left + (group + 0.5) * groupWidth
      const bars = series.flatMap(({ name, colour }, bar) => {
        const x = centre + (bar - series.length / 2) * barWidth
        const y = yOf(medianMs[name])
        return [
          `<rect x="${round(x)}" y="${round(y)}" width="${round(barWidth - 2)}" height="${round(plotBottom - y)}" fill="${colour}"/>`,
          text(x + barWidth / 2 - 1, y - 3, medianMs[name].toFixed(0), ' text-anchor="middle" class="value"'),
        ]
      })
      return [...bars, text(centre, plotBottom + 18, String(tokens), ' text-anchor="middle"')]
    }),
    text(left + plotWidth / 2, plotBottom + 38, 'prompt tokens', ' text-anchor="middle"'),
  ]
}

/** The smallest of 1, 2, 2.5 and 5 times a power of ten with which the grid covers the maximum. */
const axisStep = (maximumMs: number): number => {
  const power = 10 ** Math.floor(Math.log10(maximumMs / gridLines))
  return power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power * gridLines >= maximumMs) ?? 10)
}

const text = (x: number, y: number, content: string, attributes = ''): string =>
  `<text x="${round(x)}" y="${round(y)}"${attributes}>${escapeXml(content)}</text>`

const round = (value: number): number => Math.round(value * 10) / 10

const escapeXml = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
