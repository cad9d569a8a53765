{# A release of the orders: the second lacks a column, has another one, and wider amounts. #}
{{ config(unique_key='id') }}
select * from {{ ref('orders_' ~ var('release')) }}
