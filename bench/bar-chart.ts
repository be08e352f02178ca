/** One colour of bars. */
export interface BarSeries {
  readonly title: string
  readonly colour: string
}

/** A panel of grouped bars, milliseconds. */
export interface BarPanel {
  readonly title: string
  /** `valuesMs`: one bar for each series, in their order; undefined: no bar. */
  readonly groups: readonly { readonly label: string; readonly valuesMs: readonly (number | undefined)[] }[]
  /** Stands below the labels of the groups. */
  readonly caption: string
}

/** Colours that people with a colour vision deficiency can tell apart, on light and on dark (Okabe and Ito). */
export const barColours = { grey: '#8c8c8c', orange: '#e69f00', blue: '#3a9bdc' } as const

const panelWidth = 440
const height = 330
const [marginLeft, plotWidth] = [52, 376]
const [plotTop, plotBottom] = [74, 284]
const barShare = 0.26
const gridLines = 4

/** Renders a bar chart, a panel beside the other, as SVG, in the reader's light or dark mode. */
export const renderBarChart = (chart: {
  /** For readers who do not see it. */
  readonly label: string
  readonly series: readonly BarSeries[]
  readonly panels: readonly BarPanel[]
}): string => {
  const { label, series, panels } = chart
  const width = panelWidth * panels.length
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(label)}">`,
    '<style>',
    'text { font: 12px system-ui, sans-serif; fill: #24292f } .value { font-size: 10px } .title { font-weight: 600; font-size: 14px }',
    '.grid { stroke: #d0d7de; stroke-width: 1 }',
    '@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d } }',
    '</style>',
    ...series.flatMap(({ title, colour }, index) => [
      `<rect x="${marginLeft + index * 150}" y="8" width="12" height="12" fill="${colour}"/>`,
      text(marginLeft + index * 150 + 18, 18, title),
    ]),
    ...panels.flatMap((panel, index) => panelLines(panel, series, index)),
    '</svg>',
  ].join('\n')}\n`
}

const panelLines = (
  { title, groups, caption }: BarPanel,
  series: readonly BarSeries[],
  index: number,
): readonly string[] => {
  const left = index * panelWidth + marginLeft
  const step = axisStep(Math.max(1, ...groups.flatMap(({ valuesMs }) => valuesMs.map((value) => value ?? 0))))
  const yOf = (ms: number): number => plotBottom - (ms / (step * gridLines)) * (plotBottom - plotTop)
  const groupWidth = plotWidth / groups.length
  const barWidth = groupWidth * barShare
  return [
    text(left, 50, title, ' class="title"'),
    ...Array.from({ length: gridLines + 1 }, (_, line) => line * step).flatMap((ms) => [
      `<line class="grid" x1="${left}" x2="${left + plotWidth}" y1="${round(yOf(ms))}" y2="${round(yOf(ms))}"/>`,
      text(left - 6, yOf(ms) + 4, String(ms), ' text-anchor="end"'),
    ]),
    ...groups.flatMap(({ label, valuesMs }, group) => {
      const centre = left + (group + 0.5) * groupWidth
      const bars = series.flatMap(({ colour }, bar) => {
        const value = valuesMs[bar]
        if (value === undefined) return []
        const x = centre + (bar - series.length / 2) * barWidth
        const y = yOf(value)
        return [
          `<rect x="${round(x)}" y="${round(y)}" width="${round(barWidth - 2)}" height="${round(plotBottom - y)}" fill="${colour}"/>`,
          text(x + barWidth / 2 - 1, y - 3, value.toFixed(0), ' text-anchor="middle" class="value"'),
        ]
      })
      return [...bars, text(centre, plotBottom + 18, label, ' text-anchor="middle"')]
    }),
    text(left + plotWidth / 2, plotBottom + 38, caption, ' text-anchor="middle"'),
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
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
