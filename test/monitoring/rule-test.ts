/** Recorded series and expectations as a file for `promtool test rules`. */
import { stringify } from 'yaml'
import { formatLabels, formatValue, type Labels } from '../kit/objects/exposition.ts'
import type { Recording, Series } from './recording.ts'

export type AlertState = 'pending' | 'firing'
/** At `atMs`, the alerts of this name are these, and no others; with `only`, among those with these labels. */
export type Expectation = {
  readonly alert: string
  readonly only?: Labels
  readonly atMs: number
  readonly active: readonly { readonly labels: Labels; readonly state: AlertState }[]
}

/** A series in promtool's notation: a value per scrape, `stale` where the series ended, `_` while it is not there. */
function inputSeries({ name, labels, values }: Series): { readonly series: string; readonly values: string } {
  const words = values.map((value, index) =>
    value !== undefined ? formatValue(value) : index > 0 && values[index - 1] !== undefined ? 'stale' : '_',
  )
  return { series: `${name}${formatLabels(labels)}`, values: words.join(' ') }
}

const severity = 'warning'

/** Text of the file. Only the named series go into it: promtool evaluates slowly. */
export function ruleTest(
  { scrapesAtMs, intervalMs, series }: Recording,
  {
    ruleFile,
    names,
    expectations,
  }: {
    readonly ruleFile: string
    readonly names: ReadonlySet<string>
    readonly expectations: readonly Expectation[]
  },
): string {
  const [startMs = 0] = scrapesAtMs
  return stringify({
    rule_files: [ruleFile],
    evaluation_interval: `${intervalMs}ms`,
    tests: [
      {
        interval: `${intervalMs}ms`,
        input_series: series.filter(({ name }) => names.has(name)).map(inputSeries),
        promql_expr_test: expectations.map(({ alert, atMs, active, only = {} }) => ({
          expr: `ALERTS${formatLabels({ ...only, alertname: alert })}`,
          eval_time: `${atMs - startMs}ms`,
          exp_samples: active.map(({ labels, state }) => ({
            labels: `ALERTS${formatLabels({ ...labels, severity, alertname: alert, alertstate: state })}`,
            value: 1,
          })),
        })),
      },
    ],
  })
}
