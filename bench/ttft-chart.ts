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

/** Colours that people with a colour vision deficiency can tell apart, on light and on dark background (Okabe and Ito). */
const series = [
  { name: 'cold', title: 'no KV (cold)', colour: '#8c8c8c' },
  { name: 'otherPodLoaded', title: 'other pod, KV loaded', colour: '#e69f00' },
  { name: 'samePod', title: 'same pod', colour: '#3a9bdc' },
] as const

const panelWidth = 440
const height = 330
const plot = { left: 52, right: 12, top: 74, bottom: 46 } as const
const plotWidth = panelWidth - plot.left - plot.right
const plotHeight = height - plot.top - plot.bottom
const barShare = 0.26

/** Renders a bar chart of time to first token, a panel for each engine, as SVG. It follows the light or dark mode of the reader. */
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
      `<rect x="${plot.left + index * 150}" y="8" width="12" height="12" fill="${colour}"/>`,
      text({ x: plot.left + index * 150 + 18, y: 18 }, title),
    ]),
    ...panels.flatMap(panelLines),
    '</svg>',
  ].join('\n')}\n`
}

const panelLines = ({ title, rows }: TtftPanel, index: number): readonly string[] => {
  const left = index * panelWidth + plot.left
  const bottom = plot.top + plotHeight
  const step = axisStep(Math.max(1, ...rows.flatMap(({ medianMs }) => series.map(({ name }) => medianMs[name]))))
  const yOf = (ms: number): number => bottom - (ms / (step * gridLines)) * plotHeight
  const groupWidth = plotWidth / rows.length
  return [
    text({ x: left, y: 50, style: 'title' }, `${title}: time to first token, ms`),
    ...Array.from({ length: gridLines + 1 }, (_, line) => line * step).flatMap((ms) => [
      `<line class="grid" x1="${left}" x2="${left + plotWidth}" y1="${round(yOf(ms))}" y2="${round(yOf(ms))}"/>`,
      text({ x: left - 6, y: yOf(ms) + 4, anchor: 'end' }, String(ms)),
    ]),
    ...rows.flatMap(({ tokens, medianMs }, group) => {
      const centre = left + (group + 0.5) * groupWidth
      const barWidth = groupWidth * barShare
      return [
        ...series.flatMap(({ name, colour }, bar) => {
          const x = centre + (bar - series.length / 2) * barWidth
          const [y, ms] = [yOf(medianMs[name]), Math.round(medianMs[name])]
          return [
            `<rect x="${round(x)}" y="${round(y)}" width="${round(barWidth - 2)}" height="${round(bottom - y)}" fill="${colour}"/>`,
            text({ x: x + barWidth / 2 - 1, y: y - 3, anchor: 'middle', style: 'value' }, String(ms)),
          ]
        }),
        text({ x: centre, y: bottom + 18, anchor: 'middle' }, String(tokens)),
      ]
    }),
    text({ x: left + plotWidth / 2, y: bottom + 38, anchor: 'middle' }, 'prompt tokens'),
  ]
}

const gridLines = 4

/** The smallest of 1, 2, 2.5 and 5 times a power of ten with which the grid covers the maximum. */
const axisStep = (maximumMs: number): number => {
  const power = 10 ** Math.floor(Math.log10(maximumMs / gridLines))
  return power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power * gridLines >= maximumMs) ?? 10)
}

interface TextPlace {
  readonly x: number
  readonly y: number
  readonly anchor?: 'middle' | 'end'
  readonly style?: 'title' | 'value'
}

const text = ({ x, y, anchor, style }: TextPlace, content: string): string =>
  `<text x="${round(x)}" y="${round(y)}"${anchor === undefined ? '' : ` text-anchor="${anchor}"`}${style === undefined ? '' : ` class="${style}"`}>${escapeXml(content)}</text>`

const round = (value: number): number => Math.round(value * 10) / 10

const escapeXml = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
