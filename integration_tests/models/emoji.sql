{{ config(
    materialized='incremental',
    unique_key='unified',
    on_schema_change='append_new_columns_preserve',
) }}

{# Each release of the data set has columns of its own. What one no longer has stays in the table. #}
select
    '{{ var("release") }}' as release,
    *
from {{ ref('emoji_' ~ (var('release') | replace('.', '_'))) }}
