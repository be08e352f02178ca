import { count } from './format.ts'
import { h, type VNode } from './vendor/preact.js'
import { useEffect, useMemo, useRef, useState } from './vendor/preact-hooks.js'
import UPlot from './vendor/uplot.js'

/** Values of one kind, one for each time. */
export interface Series {
  readonly label: string
  /** A custom property of the style sheet. */
  readonly color: `--${string}`
  readonly values: readonly number[]
}

const height = 150
const windowSeconds = 600
const sampleSeconds = 5

const styleOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Each series on top of those before it. */
const stacked = (series: readonly Series[]): number[][] => {
  const sums: number[][] = []
  for (const { values } of series) sums.push(values.map((value, index) => value + (sums.at(-1)?.[index] ?? 0)))
  return sums
}

/** The highest bars first, so that lower ones are drawn over them. */
const dataOf = (times: readonly number[], series: readonly Series[]): UPlot.AlignedData => [
  [...times],
  ...stacked(series).reverse(),
]

const axis = (): UPlot.Axis => ({
  stroke: styleOf('--muted'),
  font: `11px ${styleOf('--font')}`,
  grid: { stroke: styleOf('--line'), width: 1 },
  ticks: { show: false },
})

const draw = (
  element: HTMLElement,
  {
    times,
    series,
    onCursor,
  }: { times: readonly number[]; series: readonly Series[]; onCursor: (index: number | undefined) => void },
): UPlot => {
  const bars = UPlot.paths.bars?.({ size: [0.75, 12], align: 1 })
  return new UPlot(
    {
      width: Math.max(120, element.clientWidth),
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: (_plot, _first, last) => windowUntil((last ?? Date.now() / 1000) + sampleSeconds) },
        y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [
        { ...axis(), size: 26, space: 70, values: (_plot, ticks) => ticks.map(timeLabel) },
        { ...axis(), size: 44, space: 30 },
      ],
      series: [
        {},
        ...[...series].reverse().map(
          ({ label, color }): UPlot.Series => ({
            label,
            fill: styleOf(color),
            stroke: styleOf(color),
            width: 0,
            points: { show: false },
            ...(bars === undefined ? {} : { paths: bars }),
          }),
        ),
      ],
      hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? undefined)] },
    },
    dataOf(times, series),
    element,
  )
}

/** By the gateway's clock, which may not be the browser's. */
const windowUntil = (end: number): [number, number] => [end - windowSeconds, end]

const timeLabel = (seconds: number): string =>
  new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)

/** Stacked bars of the last ten minutes, with a legend that tells sums (or values under the pointer), and a table of the same. */
export const Chart = (props: {
  readonly title: string
  /** What a value counts, such as `turns`. */
  readonly unit: string
  /** Unix times, seconds. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** Default: whole numbers. */
  readonly format?: (value: number) => string
  readonly empty: string
}): VNode => {
  const { title, unit, times, series, empty } = props
  const format = props.format ?? count
  const element = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(null)
  const [cursor, setCursor] = useState<number>()
  const latest = useRef({ times, series })
  latest.current = { times, series }

  useEffect(() => {
    const target = element.current
    if (target === null) return
    const redraw = (): void => {
      plot.current?.destroy()
      plot.current = draw(target, { ...latest.current, onCursor: setCursor })
    }
    redraw()
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', redraw)
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(120, target.clientWidth), height }),
    )
    resized.observe(target)
    return () => {
      dark.removeEventListener('change', redraw)
      resized.disconnect()
      plot.current?.destroy()
    }
  }, [])
  useEffect(() => {
    plot.current?.setData(dataOf(times, series))
  }, [times, series])

  const isEmpty = series.every(({ values }) => sum(values) === 0)
  const at = cursor === undefined ? undefined : times[cursor]
  const shown = (one: Series): string => format(at === undefined ? sum(one.values) : (one.values[cursor ?? 0] ?? 0))
  const spoken = series.map((one) => `${one.label} ${format(sum(one.values))}`).join(', ')
  return (
    <figure class="card chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="muted">
          {unit}, {at === undefined ? 'sum of 10 min' : `5 s from ${new Date(at * 1000).toLocaleTimeString('en-GB')}`}
        </span>
      </figcaption>
      <ul class="legend">
        {series.map((one) => (
          <li key={one.label}>
            <span class="swatch" style={{ background: `var(${one.color})` }} />
            {one.label} <b>{shown(one)}</b>
          </li>
        ))}
      </ul>
      <div class="plot">
        {/* The frame has a name; what the library puts inside is for eyes. */}
        <div role="img" aria-label={`${title}, ${unit} in the last 10 minutes: ${spoken}`}>
          <div ref={element} />
        </div>
        {isEmpty ? <p class="plot-empty muted">{empty}</p> : null}
      </div>
      <MinuteTable {...{ title, unit, times, series, format }} />
    </figure>
  )
}

const MinuteTable = (props: {
  readonly title: string
  readonly unit: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
}): VNode => {
  const { title, unit, times, series, format } = props
  const minutes = useMemo(() => {
    const rows = new Map<number, number[]>()
    for (const [index, time] of times.entries()) {
      const minute = Math.floor(time / 60) * 60
      const row = rows.get(minute) ?? series.map(() => 0)
      rows.set(
        minute,
        row.map((value, column) => value + (series[column]?.values[index] ?? 0)),
      )
    }
    return [...rows].reverse()
  }, [times, series])
  return (
    <details>
      <summary>Values per minute</summary>
      {minutes.length === 0 ? (
        <p class="muted">None yet.</p>
      ) : (
        <table class="small">
          <caption class="visually-hidden">
            {title}: {unit} per minute
          </caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              {series.map(({ label }) => (
                <th scope="col" key={label} class="number">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {minutes.map(([minute, values]) => (
              <tr key={minute}>
                <th scope="row">{timeLabel(minute)}</th>
                {values.map((value, column) => (
                  <td key={series[column]?.label} class="number">
                    {format(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  )
}
