/** Panels of the Grafana dashboard, in the types of Grafana's own schema: the compiler is the check. */
import {
  type DataQuery,
  type FieldColorSeriesByMode,
  FieldColorModeId,
  type FieldConfigSource,
  type GridPos,
  LineInterpolation,
  type Panel,
  type RowPanel,
  SortOrder,
  StackingMode,
  TooltipDisplayMode,
} from '@grafana/schema'
import type {
  FieldConfig as TimeSeriesField,
  Options,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen'

export type TimeSeriesOptions = Options

/** Of Grafana, with the name of the dashboard's variable for the data source. */
export const prometheus = { type: 'prometheus', uid: '${datasource}' } as const

/** One query, and how the legend names its series. */
export type Query = { readonly expr: string; readonly legend: string }

export type TimeSeries = {
  readonly title: string
  /** What the panel shows, and what to look for in it. */
  readonly description: string
  readonly queries: readonly Query[]
  /** Grafana's name of the unit; default: a plain number. */
  readonly unit?: 'percent' | 's' | 'reqps'
  /** The series add up to something. */
  readonly isStacked?: boolean
}

type PrometheusQuery = DataQuery & { readonly expr: string; readonly legendFormat: string; readonly range: true }

const columns = 24
const panelsPerRow = 3
const [width, height] = [columns / panelsPerRow, 8]

/** A row of panels with its heading. Returns them with the line below. */
export function rowOf(
  title: string,
  series: readonly TimeSeries[],
  { firstId, y }: { readonly firstId: number; readonly y: number },
): { readonly panels: readonly (Panel | RowPanel)[]; readonly nextId: number; readonly nextY: number } {
  const heading = {
    type: 'row',
    id: firstId,
    title,
    collapsed: false,
    gridPos: { x: 0, y, w: columns, h: 1 },
    panels: [],
  } satisfies RowPanel
  const panels = series.map((one, index) =>
    timeSeries(one, firstId + 1 + index, {
      x: (index % panelsPerRow) * width,
      y: y + 1 + Math.floor(index / panelsPerRow) * height,
      w: width,
      h: height,
    }),
  )
  return {
    panels: [heading, ...panels],
    nextId: firstId + 1 + series.length,
    nextY: y + 1 + Math.ceil(series.length / panelsPerRow) * height,
  }
}

function timeSeries(
  { title, description, queries, unit, isStacked = false }: TimeSeries,
  id: number,
  gridPos: GridPos,
): Panel {
  return {
    type: 'timeseries',
    id,
    title,
    description,
    datasource: prometheus,
    gridPos,
    fieldConfig: {
      defaults: {
        min: 0,
        ...(unit === 'percent' && { max: 100 }),
        unit: unit ?? 'short',
        color: { mode: FieldColorModeId.PaletteClassicByName, seriesBy: 'last' satisfies FieldColorSeriesByMode },
        custom: {
          lineInterpolation: LineInterpolation.StepAfter,
          fillOpacity: isStacked ? 40 : 0,
          stacking: { mode: isStacked ? StackingMode.Normal : StackingMode.None },
        } satisfies TimeSeriesField,
      },
      overrides: [],
    } satisfies FieldConfigSource<TimeSeriesField>,
    options: {
      legend: { showLegend: true, placement: 'bottom', calcs: [] },
      tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
    } satisfies TimeSeriesOptions,
    targets: queries.map(
      ({ expr, legend }, index) =>
        ({
          refId: String.fromCharCode(65 + index),
          datasource: prometheus,
          expr,
          legendFormat: legend,
          range: true,
        }) satisfies PrometheusQuery,
    ),
  }
}
