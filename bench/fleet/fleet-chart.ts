import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { barColours, renderBarChart } from '../bar-chart.ts'
import { outputFile } from '../bench-process.ts'
import { fleetEngineNames } from './fleet-options.ts'
import { wayNames } from './ways.ts'

const figure = z.number().optional()

/** The part of a file of figures that the chart shows. */
export const fleetFiguresForm = z.object({
  engine: z.enum(fleetEngineNames),
  results: z.array(
    z.object({
      way: z.enum(wayNames),
      figures: z.object({ later: z.object({ ttftP50Ms: figure, ttftP90Ms: figure, anewShare: figure }) }),
    }),
  ),
})

/** The figures of one engine. */
export type FleetPanel = z.infer<typeof fleetFiguresForm>

const colours = { 'round-robin': barColours.grey, affinity: barColours.orange, gateway: barColours.blue } as const
const series = wayNames.map((title) => ({ title, colour: colours[title] }))

/** Renders a bar chart of later turns, a panel for each engine, as SVG. */
export const renderFleetChart = (panels: readonly FleetPanel[]): string =>
  renderBarChart({
    label: 'Time to first token of later turns in milliseconds, and the share of their prompts that was computed anew',
    series,
    panels: panels.map(({ engine, results }) => {
      const laterOf = (way: string) => results.find((result) => result.way === way)?.figures.later
      return {
        title: `${engine}: TTFT of later turns, ms`,
        groups: [
          { label: 'p50', valuesMs: wayNames.map((way) => laterOf(way)?.ttftP50Ms) },
          { label: 'p90', valuesMs: wayNames.map((way) => laterOf(way)?.ttftP90Ms) },
        ],
        caption: `computed anew: ${results.map(({ way }) => `${way} ${shareText(laterOf(way)?.anewShare)}`).join(', ')}`,
      }
    }),
  })

/** Draws the latest figures of each engine that was measured. Resolves to the chart's file. */
export const drawFleetChart = async (): Promise<string> => {
  const files = await Promise.all(fleetEngineNames.map((name) => outputFile(`fleet-${name}.json`)))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => undefined)))
  const figures = texts.filter((text) => text !== undefined).map((text) => fleetFiguresForm.parse(JSON.parse(text)))
  const chart = await outputFile('fleet.svg')
  await writeFile(chart, renderFleetChart(figures))
  return chart
}

const shareText = (share: number | undefined): string => (share === undefined ? '–' : `${(100 * share).toFixed(0)} %`)
