{{ config(incremental_strategy='merge', unique_key='id', meta={'sparkevolve': {'audits': ['amount > 0']}}) }}
select * from {{ ref('orders') }}
