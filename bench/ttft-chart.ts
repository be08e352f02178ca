import { barColours, renderBarChart } from './bar-chart.ts'

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

const series = [
  { name: 'cold', title: 'no KV (cold)', colour: barColours.grey },
  { name: 'otherPodLoaded', title: 'other pod, KV loaded', colour: barColours.orange },
  { name: 'samePod', title: 'same pod', colour: barColours.blue },
] as const

/** Renders a bar chart of time to first token, a panel for each engine, as SVG. */
export const renderTtftChart = (panels: readonly TtftPanel[]): string =>
  renderBarChart({
    label: 'Time to first token in milliseconds',
    series,
    panels: panels.map(({ title, rows }) => ({
      title: `${title}: time to first token, ms`,
      groups: rows.map(({ tokens, medianMs }) => ({
        label: String(tokens),
        valuesMs: series.map(({ name }) => medianMs[name]),
      })),
      caption: 'prompt tokens',
    })),
  })
