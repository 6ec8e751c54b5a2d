/** Series of the fleet as a person reads them on the page of an agent. */
import {
  type FleetLabelsOf,
  type FleetMetricName,
  fleetMetrics,
  type FleetSeries,
} from '../../../src/schemas/catalogue/fleet-metrics.ts'

/** One line for each sample, as `name{label="value"} 1`. */
export const seriesText = (series: FleetSeries): string[] =>
  Object.entries(series).flatMap(([name, samples]) =>
    (samples ?? []).map(([values, value]) => {
      const labels = Object.keys(fleetMetrics[name as FleetMetricName].labels)
      return lineOf(name, Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ''])), value)
    }),
  )

/** The line of one sample; its labels may come in any order. */
export function seriesLine<Name extends FleetMetricName>(
  name: Name,
  labels: FleetLabelsOf<Name>,
  value: number,
): string {
  const values = new Map<string, string>(Object.entries(labels))
  const ordered = Object.keys(fleetMetrics[name].labels).map((label) => [label, values.get(label) ?? ''])
  return lineOf(name, Object.fromEntries(ordered) as Record<string, string>, value)
}

const lineOf = (name: string, labels: Readonly<Record<string, string>>, value: number): string => {
  const text = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
  return `${name}${text.length === 0 ? '' : `{${text.join(',')}}`} ${value}`
}
